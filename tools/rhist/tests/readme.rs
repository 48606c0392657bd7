// SPDX-License-Identifier: MIT OR Apache-2.0

//! What README shows of `rhist`: the picture at its top. `TRYCMD=overwrite cargo test --test readme` draws it again.

#[test]
fn the_picture_of_readme() {
    std::env::set_current_dir("../..").unwrap();
    trycmd::TestCases::new().case("README.md");
}
