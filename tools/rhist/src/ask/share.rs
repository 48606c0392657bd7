// SPDX-License-Identifier: MIT OR Apache-2.0

//! Limits how much of the CPUs several questions take together.

use std::thread;

use super::count::open;
use super::plan::plan;
use crate::backend::{cpus, Backend, Plan};
use crate::error::Result;
use crate::questions::Asked;
use crate::session::{owner, Session, SAMPLE};
use crate::tracefs::Tracefs;

/// The largest cost of all questions together, in millionths of all CPUs.
pub const MOST: u64 = 20_000;

/// The assumed time of a hit in nanoseconds, for triggers that do not measure it: a hit of C has some 1,500
/// instructions.
const HIT: u128 = 1000;

/// Measures the cost of each question for a moment. Returns the questions that together take at most `most` millionths of
/// all CPUs, in their order, and for each other one a sentence that says why not.
pub fn affordable(
    all: Vec<Asked>,
    most: u64,
    backend: Backend,
    tracefs: &Tracefs,
) -> Result<(Vec<Asked>, Vec<String>)> {
    let mut session = Session::begin(tracefs, &Plan::default(), 0, false)?;
    let (mut kept, mut said) = (Vec::new(), Vec::new());
    let mut left = most;
    for mut asked in all {
        asked.question.costs = true;
        let words = asked.words.join(" ");
        match cost(&asked, backend, tracefs, &mut session) {
            Ok(cost) if cost <= left => {
                left -= cost;
                // Asks no confirmation for frequent events: the cost has just been measured.
                asked.options.yes = true;
                kept.push(asked);
            }
            Ok(cost) => said.push(format!(
                "{words} is left out: it takes {} of all CPUs, and {} are left; ask it alone",
                percent(cost),
                percent(left)
            )),
            Err(error) => said.push(format!("{words} is left out: {error}")),
        }
    }
    session.end()?;
    Ok((kept, said))
}

/// Returns a number of millionths as text in percent.
pub fn percent(millionths: u64) -> String {
    format!("{:.2} %", millionths as f64 / 1e4)
}

/// Returns the cost of a question in millionths of all CPUs: measured by its triggers, or estimated from its hits.
fn cost(asked: &Asked, backend: Backend, tracefs: &Tracefs, session: &mut Session) -> Result<u64> {
    let plan = plan(asked, backend, tracefs, &owner(0))?;
    let measured = match backend {
        Backend::C => None,
        Backend::Module { .. } => session.try_out(&plan.steps, |instance| {
            thread::sleep(SAMPLE);
            Ok(open(backend, instance, &plan)?.next()?.cost)
        })?,
    };
    if let Some(of_one) = measured {
        return Ok(of_one / cpus());
    }
    let rates = session.rates(&backend.command(), &plan.steps)?;
    Ok(reckoned(
        rates.iter().map(|&(_, _, all)| all),
        &plan,
        cpus(),
    ))
}

/// Returns the estimated cost of a plan in millionths of all CPUs; `rates` has the hits a second of each event. A
/// synthetic event that the plan creates is taken to happen as often as the rarest of them.
fn reckoned(rates: impl Iterator<Item = u128> + Clone, plan: &Plan, cpus: u64) -> u64 {
    let made = plan.events.iter().filter(|event| event.contains("rhist_"));
    let hits = rates.clone().sum::<u128>() + rates.min().unwrap_or(0) * made.count() as u128;
    u64::try_from(hits * HIT / 1000 / u128::from(cpus)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tests::asked;

    #[test]
    fn hits_take_time() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let of = |backend: Backend, rates: &[u128]| {
            let plan = plan(&asked("runq"), backend, &tracefs, "1").unwrap();
            reckoned(rates.iter().copied(), &plan, 4)
        };
        // 50,000 hits of 1 us are a twentieth of one CPU; C has a synthetic event besides.
        let module = Backend::Module { beside: false };
        assert_eq!(of(module, &[20_000, 30_000]), 12_500);
        assert_eq!(of(Backend::C, &[20_000, 30_000]), 17_500);
        assert_eq!(of(Backend::C, &[]), 0);
        assert_eq!(percent(12_500), "1.25 %");
    }
}
