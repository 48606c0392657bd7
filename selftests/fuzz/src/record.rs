// SPDX-License-Identifier: GPL-2.0

//! Records of any bytes, of any length, through triggers of all kinds: every call is accounted for,
//! rows are shown, and nothing outside of the record is looked at.

use crate::{
    bytes::Bytes,
    lang_common::{
        Around,
        AROUND,
        ZOO, //
    },
    run::World,
};

/// The event of all of them.
const ALL: (&str, &str) = ("zoo", "all");

/// Triggers that read every kind of field in every way.
const TRIGGERS: &[&str] = &[
    "keys=filename:vals=u8",
    "keys=label,second:vals=s16",
    "keys=seven,big",
    "keys=stack",
    "keys=stack.stacktrace,u16",
    "keys=pointed,func.sym",
    "keys=u8.log2,s8,u16.buckets=7:vals=s32,u64",
    "keys=s64.hex,u32.log2,odd:sort=s64.descending",
    "keys=common_comm,common_cpu,common_pid.execname",
    "keys=u8:vals=u64-s64,s32*u16+s8:sort=u8",
    "keys=u8:vals=u64/s8",
    "keys=common_stacktrace,filename",
    "keys=u8:name=filename,where=label,seven_=seven,far=big,st=stack,n=s16,t=common_timestamp.usecs",
    "keys=u8:vals=$n:back=$where,lat=common_timestamp.usecs-$t",
    "keys=u8:v=u16:onmax($v).save(filename,label,second,seven,s8,stack)",
    "keys=u8:w=s64:onchange($w).save(big,func,odd)",
    "keys=u8:x=u32:onmax($x).both(filename,s64)",
    "keys=u8:y=u16:onchange($y).texts(label,seven,filename)",
    "keys=u8:z=u16:onchange($z).frames(stack,u64)",
    "keys=u64,filename:nohitcount:vals=u32",
];

pub(crate) fn run(input: &[u8]) {
    let mut world = World::default();
    world.synth("both char[] text; s64 number");
    world.synth("texts char[16] a; char[] b; char[] c");
    world.synth("frames long[] s; u64 n");

    let mut input = Bytes(input);
    let first = usize::from(input.byte());
    // A few at a time; those that refer to others are after them.
    let chosen: Vec<usize> = match first {
        255.. => (0..TRIGGERS.len()).collect(),
        n => (0..TRIGGERS.len())
            .filter(|i| i % 8 == n % 8 || *i == 12)
            .collect(),
    };
    for &i in &chosen {
        // What refers to a trigger that is not among the chosen is refused.
        let _ = world.try_add(&ZOO, ALL, TRIGGERS[i].as_bytes());
    }

    let mut calls = 0;
    let mut hits = vec![0; world.triggers.len()];
    // A table has room for 128 keys.
    while !input.is_empty() && calls < 100 {
        let len = usize::from(input.byte()) * 4 + usize::from(input.below(4));
        let around = Around {
            ts: u64::from(input.byte()) << input.below(64),
            ..AROUND
        };
        let record = input.take(len);

        calls += 1;
        for (n, hits) in hits.iter_mut().enumerate() {
            *hits += u64::from(world.hit(n, record, &around).is_hit);
        }
    }
    for (n, hits) in hits.into_iter().enumerate() {
        let account = world.triggers[n].map().account();
        let rows = world.rows(n);

        assert_eq!((account.calls(), account.hits), (calls, hits));
        assert!(rows.len() as u64 <= account.hits);
        assert!(rows.iter().all(|row| row.len() < 64 * 1024));
    }
}
