// SPDX-License-Identifier: GPL-2.0

//! Triggers whose starts expire: generations of their tables, in the steps of `Table::turn` of the module.

use super::*;
use rust_hist::tracing_map::Left;

impl World {
    /// Gives trigger `n` so many further maps, each to become the youngest in its turn.
    pub(crate) fn with_generations(mut self, n: usize, more: usize) -> Self {
        let shape = *self.triggers[n].map.shape();
        let maps = (0..more).map(|_| self.tables.map(shape).0).collect();

        self.triggers[n].next = maps;
        self
    }
}

impl Trigger {
    /// Ends a generation: an empty map is the youngest, and of those before it only the last one is looked in any more.
    pub(crate) fn turn(&self) {
        self.settle();
        self.exchange();
    }

    /// Takes a larger map, or another one, for the youngest, in the same generation.
    pub(crate) fn extend(&self) {
        self.exchange();
    }

    /// What has become of the starts in map `number`, which no hit uses any more.
    pub(crate) fn left(&self, number: u32) -> Left {
        let younger = (number + 1..=self.next.len() as u32).map(|n| self.numbered(n));

        self.numbered(number)
            .left(younger, |aux, begun| self.program.starts(aux, begun))
    }
}
