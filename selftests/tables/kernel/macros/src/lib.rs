// SPDX-License-Identifier: GPL-2.0

//! The attributes of the kernel crate, on the host.

use proc_macro::TokenStream;

/// Leaves the item as it is: no optional function of a trait is asked for on the host.
#[proc_macro_attribute]
pub fn vtable(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    item
}
