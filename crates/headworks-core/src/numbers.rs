//! Maps by numbers that nodes give: nobody outside chooses these keys, so a fast hash is a safe one.

/// A map whose keys are numbers of buckets or children.
pub type NumberMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set of such numbers.
pub type NumberSet<K> = rustc_hash::FxHashSet<K>;
