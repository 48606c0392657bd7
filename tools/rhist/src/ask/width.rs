// SPDX-License-Identifier: MIT OR Apache-2.0

//! The width of intervals: chosen from the counts of the first second, if the implementation has no fine intervals.

use super::budget::MOST_ROWS;
use crate::backend::Backend;
use crate::model::{Table, Unit};
use crate::quantile::width_within;
use crate::question::{Intervals, Question};
use crate::questions::Asked;

/// Returns the wanted precision of percentiles in percent, if powers of two are too coarse for it and the backend needs
/// a width, which is chosen from the counts of the first second.
pub fn first_second(backend: Backend, question: &Question) -> Option<u64> {
    match question.intervals {
        Intervals::Within(percent)
            if backend == Backend::C && question.has_intervals() && percent < 100 =>
        {
            Some(percent)
        }
        _ => None,
    }
}

/// Chooses the width of a question's intervals from a table of powers of two, and says which one. Keeps the powers of
/// two if the table has no room for finer intervals.
pub fn choose_width(asked: &mut Asked, table: &Table, within: u64) -> String {
    let question = &mut asked.question;
    let unit = question.unit().map_or("", Unit::name);
    match width_within(&table.groups(), asked.lowest, within) {
        None => "nothing was counted in the first second, so the intervals are powers of two".into(),
        Some((width, rows)) if rows <= question.size.into() => {
            question.intervals = Intervals::Width(width);
            format!("the intervals are {width}{unit} wide by the first second, as by --buckets {width}")
        }
        Some((width, rows)) => format!(
            "the intervals are powers of two: of {width}{unit} they take about {rows} rows, and there are {}; {}",
            question.size,
            match rows <= MOST_ROWS.into() {
                true => format!("--size {} makes room", rows.next_power_of_two()),
                false => "ask for less by --max, --if or --by".into(),
            }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tests::asked;

    #[test]
    fn the_first_second_chooses_intervals() {
        let second = |backend, text: &str| first_second(backend, &asked(text).question);
        assert_eq!(second(Backend::C, "runq --within 10"), Some(10));
        // Powers of two are fine enough, there are no intervals, or the module has fine intervals itself.
        assert_eq!(second(Backend::C, "runq --within 100"), None);
        assert_eq!(second(Backend::C, "oncpu --within 10"), None);
        assert_eq!(second(Backend::C, "runq"), None);
        assert_eq!(
            second(Backend::Module { beside: true }, "runq --within 10"),
            None
        );
        let chosen = |text: &str, rows: &[(i128, u32, u64)]| {
            let mut asked = asked(text);
            let said = choose_width(&mut asked, &crate::testing::table(rows), 10);
            (said, asked.question.intervals)
        };
        let (said, intervals) = chosen("runq", &[(7, 14, 10), (7, 20, 1), (8, 15, 2)]);
        assert_eq!(
            said,
            "the intervals are 800ns wide by the first second, as by --buckets 800"
        );
        assert_eq!(intervals, Intervals::Width(800));
        let asked = chosen("runq --within 10", &[]);
        assert!(asked.0.starts_with("nothing was counted"), "{}", asked.0);
        assert_eq!(asked.1, Intervals::Within(10));
        let wide = [(7, 14, 10), (7, 24, 1)];
        let (said, intervals) = chosen("runq", &wide);
        assert!(
            said.ends_with("about 20962 rows, and there are 8192; --size 32768 makes room"),
            "{said}"
        );
        assert_eq!(intervals, Intervals::Usual);
        assert_eq!(chosen("runq --size 32768", &wide).1, Intervals::Width(800));
        let (said, _) = chosen("runq", &[(7, 14, 10), (7, 40, 1)]);
        assert!(
            said.ends_with("; ask for less by --max, --if or --by"),
            "{said}"
        );
    }
}
