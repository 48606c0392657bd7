// SPDX-License-Identifier: GPL-2.0

//! Tables whose starts expire: the generations of their maps.
//!
//! See `tracing_map/expire.rs` for generations. One ends after the time of `expire(T)`, or early if its map is crowded
//! and must not be larger. With `size=A..B` a larger map replaces a crowded one within a generation, which may then
//! have several maps. A look-up of a start follows `Live::replaced` from each map to the one before it.
//!
//! The rows of all generations are rows of the table; counts of dropped generations are in its account.
//!
//! Context: process, may sleep. Functions that fail return `ENOMEM` and change nothing.

use super::{
    emptied,
    take,
    Epochs,
    HistMap,
    Live,
    Table,
    CONTENT,
    FAILED,
    LATER_MS, //
};
use crate::{
    ffi::{
        clock::Moment,
        guard::{
            wait_for_hits,
            EventMutex,
            EventMutexHeld, //
        }, //
    },
    program::Program,
    sync::{
        Relaxed,
        Release, //
    },
    tracing_map::{
        Account,
        Left, //
    }, //
};
use core::{
    iter,
    ptr::null_mut,
    slice, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

/// The maps before the present one, of all generations that still exist, oldest first; and the counts of dropped ones.
pub(super) struct OlderMaps {
    older: KVec<Arc<Live>>,
    gone: Account,
    /// Whether starts in the table expire, so that there may be older maps.
    expires: bool,
}

/// The maps of a table at one moment, owned by the holder.
pub(crate) struct Maps {
    live: Arc<Live>,
    before: OlderMaps,
}

impl Maps {
    /// Iterates over all maps, the youngest first.
    pub(crate) fn iter(&self) -> YoungestFirst<'_> {
        YoungestFirst {
            next: Some(&self.live),
            older: self.before.older.iter(),
        }
    }

    /// Returns the youngest map.
    pub(crate) fn youngest(&self) -> &HistMap {
        &self.live.map
    }

    /// Returns whether a key may be in several of the maps.
    pub(crate) fn are_several(&self) -> bool {
        !self.before.older.is_empty()
    }

    /// Returns the hits of dropped maps; `None` if starts never expire.
    pub(crate) fn retired(&self) -> Option<u64> {
        self.before.expires.then_some(self.before.gone.hits)
    }

    /// Returns all counts of the maps, which have this program.
    pub(crate) fn account(&self, program: &Program) -> Account {
        self.account_of(program, self.hits())
    }

    /// Returns the hits that these maps have counted.
    fn hits(&self) -> u64 {
        let hits = self.iter().map(HistMap::hits);
        hits.fold(0, u64::wrapping_add)
    }

    /// Returns the hits of these maps and of dropped ones.
    pub(super) fn account_hits(&self) -> u64 {
        self.before.gone.hits.wrapping_add(self.hits())
    }

    /// Returns all counts; `hits` are the hits of these maps.
    pub(crate) fn account_of(&self, program: &Program, hits: u64) -> Account {
        let mut hits = Some(hits);
        self.iter().fold(self.before.gone, |sum, map| {
            let mut account = map.account_of(hits.take().unwrap_or(0));
            if self.before.expires {
                account.overwritten = left(map, iter::empty(), program).overwritten;
            }
            sum.plus(&account)
        })
    }

    /// Returns the number of different keys.
    pub(crate) fn keys(&self) -> usize {
        let keys = |(n, map): (usize, &HistMap)| map.alone(self.iter().take(n));
        self.iter().enumerate().map(keys).sum()
    }

    /// Returns the bytes that the maps take.
    pub(super) fn bytes(&self) -> usize {
        let older = self.before.older.iter().map(|live| live.bytes());
        self.live.bytes() + older.sum::<usize>()
    }

    /// Returns the youngest map, for a caller that drops the others.
    pub(super) fn live(&self) -> Arc<Live> {
        self.live.clone()
    }
}

/// Iterates over the maps of a table, the youngest first.
///
/// A type instead of adapters: the symbol of a function grows with each iterator adapter among its types, and the
/// kernel allows 511 bytes (see Kbuild).
#[derive(Clone)]
pub(crate) struct YoungestFirst<'a> {
    next: Option<&'a Arc<Live>>,
    older: slice::Iter<'a, Arc<Live>>,
}

impl<'a> Iterator for YoungestFirst<'a> {
    type Item = &'a HistMap;

    fn next(&mut self) -> Option<&'a HistMap> {
        let next = self.next?;
        self.next = self.older.next_back();
        Some(&next.map)
    }
}

/// The reason why a map replaces another one.
#[derive(Clone, Copy, PartialEq)]
enum Why {
    /// The map is crowded, and the next one is larger.
    Room,
    /// A generation ends; early if it `is_forced`.
    Turn { is_forced: bool },
}

impl Epochs {
    /// Hides the maps that were not the youngest any more when the previous generation ended, and returns their number.
    /// The remaining maps are hidden when the next generation ends.
    fn hide(&mut self, live: &Live) -> usize {
        let old = core::mem::replace(&mut self.old, self.older.len());
        let youngest = self.older.get(old).map_or(live, |older| older);
        // ORDERING: pairs with `Acquire` in `Live::replaced`; a hit that does not see the hidden maps needs nothing
        // else of them.
        youngest.replaced.store(null_mut(), Release);
        old
    }
}

/// Returns the starts in a map that no end has consumed; `younger` are the younger maps of the same table, with this
/// program.
fn left<'m>(
    map: &'m HistMap,
    younger: impl Iterator<Item = &'m HistMap> + Clone,
    program: &Program,
) -> Left {
    map.left(younger, |aux, begun| program.starts(aux, begun))
}

/// Returns when a generation that begins now ends, for a table of this program.
pub(super) fn after(program: &Program) -> u64 {
    let ms = program.expiry().map_or(0, |expiry| expiry.ms);
    Moment::now().monotonic.saturating_add(ms * 1_000_000)
}

impl Table {
    /// Returns whether starts in the table expire.
    pub(crate) fn expires(&self) -> bool {
        self.form.dimensions.expires
    }

    /// Returns how often a generation has ended early; `None` if starts never expire.
    pub(crate) fn forced(&self, held: &EventMutexHeld) -> Option<u64> {
        self.expires().then(|| self.epochs.get(held).grown.forced)
    }

    /// Returns the maps of the table, for a reader. Allocated, as readers take much stack.
    #[inline(never)]
    pub(super) fn maps(&self, held: &EventMutexHeld) -> Result<Arc<Maps>> {
        Ok(Arc::new(self.list(held)?, GFP_KERNEL_ACCOUNT)?)
    }

    /// Lists the maps of the table.
    fn list(&self, held: &EventMutexHeld) -> Result<Maps> {
        let live = self.live(held);
        let epochs = self.epochs.get(held);
        let mut older = KVec::new();
        if !epochs.older.is_empty() {
            older.extend_from_slice(&epochs.older, GFP_KERNEL_ACCOUNT)?;
        }
        let before = OlderMaps {
            older,
            gone: epochs.gone,
            expires: self.expires(),
        };
        Ok(Maps { live, before })
    }

    /// Begins the first generation, and returns the previous generations.
    pub(super) fn begin(&self, held: &EventMutexHeld) -> OlderMaps {
        let epochs = self.epochs.get(held);
        epochs.old = 0;
        epochs.due = self.next_due();
        if epochs.readers == 0 {
            epochs.spare = None;
        }
        OlderMaps {
            older: take(&mut epochs.older),
            gone: take(&mut epochs.gone),
            expires: self.expires(),
        }
    }

    /// Returns when a generation that begins now ends.
    fn next_due(&self) -> u64 {
        after(&self.definition.program)
    }

    /// Returns when the present generation ends, in ns of the monotonic clock; `None` if starts never expire.
    pub(crate) fn due(&self, held: &EventMutexHeld) -> Option<u64> {
        self.expires().then(|| self.epochs.get(held).due)
    }

    /// Gives a table whose starts expire another map, if it still needs one: a larger one if it is crowded and may
    /// grow, else an empty one at the end of a generation. Only one thread may call this.
    ///
    /// After a failure the next attempt does not follow at once.
    pub(crate) fn succeed(&self) -> Result {
        let is_due = self.epochs.get(&EventMutex::lock()).due <= Moment::now().monotonic;
        let done = self.try_succeed(is_due);
        if done.is_err() {
            self.leave_room(FAILED);
            if is_due {
                let later = u64::from(LATER_MS) * 1_000_000;
                self.epochs.get(&EventMutex::lock()).due = Moment::now().monotonic + later;
            }
        }
        done
    }

    fn try_succeed(&self, is_due: bool) -> Result {
        let maps = self.list(&EventMutex::lock())?;
        let young = &maps.live;
        if !is_due && !young.map.is_crowded() {
            self.leave_room(CONTENT);
            return Ok(());
        }
        if is_due && young.map.used() == 0 && !maps.are_several() {
            // The table has no starts that could expire.
            let due = self.next_due();
            self.epochs.get(&EventMutex::lock()).due = due;
            return Ok(());
        }
        if !is_due && young.map.shape().elts < self.most_elts() {
            if let Ok(larger) = self.larger(young) {
                return self.put(larger, young, Why::Room);
            }
        }
        self.turn(maps, !is_due)
    }

    /// Ends a generation; early if it `is_forced`.
    fn turn(&self, maps: Maps, is_forced: bool) -> Result {
        let spare = self.epochs.get(&EventMutex::lock()).spare.take();
        let fresh = spare.filter(|spare| spare.map.shape() == maps.live.map.shape());
        let fresh = match fresh {
            None => Live::new(self.like(&maps.live), false).ok(),
            fresh => fresh,
        };
        let is_late = fresh.is_none();
        let hidden = {
            let held = EventMutex::lock();
            let epochs = self.epochs.get(&held);
            // If there is no memory, a map must be left to be reused.
            if is_late && epochs.old == 0 {
                return Err(ENOMEM);
            }
            // The table may have been cleared, or consumed.
            if !Arc::ptr_eq(&self.live(&held), &maps.live) {
                return Ok(());
            }
            epochs.older.reserve(1, GFP_KERNEL)?;
            epochs.hide(&maps.live)
        };
        if let Some(fresh) = fresh {
            self.put(fresh, &maps.live, Why::Turn { is_forced })?;
        }
        wait_for_hits();
        self.settle(&maps, hidden);

        // The hidden maps are the first ones of the list.
        let Maps { live, mut before } = maps;
        let mut hidden = before.older.drain_all().take(hidden);
        let again = hidden.find_map(|old| {
            let is_like = old.map.shape() == live.map.shape();
            is_like.then(|| emptied(old)).flatten()
        });
        drop(hidden);
        match again {
            Some(again) if is_late => {
                self.put(again, &live, Why::Turn { is_forced })?;
                wait_for_hits();
                Ok(())
            }
            None if is_late => Err(ENOMEM),
            Some(again) => {
                self.keep(again, is_forced);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts the unconsumed starts in the first `hidden` maps, which no hit finds any more, and adds their other
    /// counts to those of dropped maps.
    fn settle(&self, maps: &Maps, hidden: usize) {
        let program = &self.definition.program;
        let older = &maps.before.older;
        for (n, old) in older.iter().enumerate().take(hidden) {
            let left = left(&old.map, maps.iter().take(older.len() - n), program);
            let account = Account {
                expired: left.expired,
                overwritten: left.overwritten,
                ..old.map.account()
            };

            let held = EventMutex::lock();
            let epochs = self.epochs.get(&held);
            // If the table was cleared or consumed meanwhile, its counts have restarted without these maps.
            let at = epochs.older.iter().position(|own| Arc::ptr_eq(own, old));
            if at.is_some_and(|at| epochs.older.remove(at).is_ok()) {
                epochs.old = epochs.old.saturating_sub(1);
                epochs.gone = epochs.gone.plus(&account);
            }
        }
    }

    /// Replaces the map `young` by `next`, unless `young` is not the present map any more.
    fn put(&self, next: UniqueArc<Live>, young: &Arc<Live>, why: Why) -> Result {
        // ORDERING: `exchange` publishes this store together with the address of the map; hits find the pointer only
        // there.
        next.replaced.store(Arc::as_ptr(young).cast_mut(), Relaxed);
        let held = EventMutex::lock();
        if !Arc::ptr_eq(&self.live(&held), young) {
            return Ok(());
        }
        let epochs = self.epochs.get(&held);
        epochs.older.reserve(1, GFP_KERNEL)?;
        self.leave_room(CONTENT);
        let young = self.exchange(next.into(), &held);
        let due = self.next_due();
        let epochs = self.epochs.get(&held);
        // Room was reserved before.
        epochs.older.push(young, GFP_KERNEL)?;
        match why {
            Why::Room => epochs.grown.times += 1,
            Why::Turn { is_forced } => {
                epochs.grown.forced += u64::from(is_forced);
                (epochs.old, epochs.due) = (epochs.older.len(), due);
            }
        }
        Ok(())
    }

    /// Keeps a map for the next generation, if that is to begin without delay, or if readers need a spare map.
    fn keep(&self, spare: UniqueArc<Live>, is_forced: bool) {
        let held = EventMutex::lock();
        let fits = self.live(&held).map.shape() == spare.map.shape();
        let epochs = self.epochs.get(&held);
        if fits && epochs.spare.is_none() && (is_forced || epochs.readers > 0) {
            epochs.spare = Some(spare);
        }
    }
}
