// SPDX-License-Identifier: GPL-2.0

//! What the files of an event say where there is nothing to read.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    compile,
    ZOO, //
};
use rust_hist_tables::{
    sim::Machine,
    Event,
    Pipe,
    Table, //
};
use std::sync::Arc;

#[test]
fn x_42_an_open_file_logs_once_that_others_read_all_tables() {
    let machine = Machine::start();
    let text = b"keys=u64:v=u8:size=128";
    let program = Arc::new(compile(&ZOO, text).expect("compiles"));
    let table = Table::new(&program, text, 7, 7).expect("memory");
    let event = Arc::new(Event::new());

    event.add(&table).expect("memory");
    let pipe = Pipe::open(&event).expect("is consumed");
    event.remove_all();
    event.add_used(&table).expect("memory");

    for _ in 0..3 {
        assert!(pipe.read().is_err());
        assert_eq!(machine.logged(), 1);
    }
    assert!(Pipe::open(&event).is_err());
    assert_eq!(machine.logged(), 2);
    event.remove_all();
}

#[test]
fn x_40_an_event_without_triggers_has_one_line() {
    const LINE: &str = "{\"v\":1,\"type\":\"none\",\"event\":\"test:event\"}\n";

    Machine::start();
    let event = Arc::new(Event::new());

    assert_eq!(event.read_json().expect("memory"), LINE);
    let pipe = Pipe::open(&event).expect("opens");
    assert_eq!(pipe.read().expect("memory").give(), LINE);
}
