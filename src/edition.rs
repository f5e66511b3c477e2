//! Which configuration of a plugin is its newest.
//!
//! A root context lives on while its listener drains or one old stream goes on, for many minutes at
//! times, and several plugins may share a VM. Only what the newest configuration of a plugin was
//! worth is of interest.

use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    /// The number of the newest configuration of each plugin in this VM, by the plugin's name.
    static NEWEST: RefCell<HashMap<Vec<u8>, u32>> = RefCell::default();
}

/// One configuration of a plugin.
#[derive(Debug)]
pub struct Edition {
    plugin: Vec<u8>,
    number: u32,
}

impl Edition {
    /// The plugin of this name has been given a configuration.
    pub fn next(plugin: Vec<u8>) -> Self {
        NEWEST.with_borrow_mut(|newest| {
            let number = newest.entry(plugin.clone()).or_default();
            *number = number.wrapping_add(1);
            Self { plugin, number: *number }
        })
    }

    /// Whether the plugin has been given no other since.
    pub fn is_newest(&self) -> bool {
        NEWEST.with_borrow(|newest| newest.get(&self.plugin) == Some(&self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edition_is_the_newest_of_its_plugin_until_the_next_one() {
        let of = |plugin: &[u8]| Edition::next(plugin.to_vec());
        let (first, other) = (of(b"a"), of(b"b"));
        assert!(first.is_newest() && other.is_newest());
        let second = of(b"a");
        assert!(!first.is_newest() && second.is_newest() && other.is_newest());
    }
}
