//! Charts of a run, for terminals and for files.
