//! Limits files: reading them, and watching them by content.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use headworks_core::limits::{Fault, Faults, Limit, LimitSet, confirmation, parse_bytes, review};
use headworks_proto::MAX_LIMITS_BYTES;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How often the content is compared; reading is right for renames, writes in place and swapped symlinks alike.
const LOOK: Duration = Duration::from_secs(1);
/// Lines that the log tells of a refusal; a tool tells them all.
const TOLD: usize = 20;
/// Largest file that is read: more is somebody's mistake, and would be read every second.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Why limits could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot read limits {}: {source}; give a file, or a folder of .yaml files", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("limits {} hold more than {MAX_BYTES} bytes; split them", path.display())]
    TooLarge { path: PathBuf },
    #[error(
        "the limits take {bytes} bytes in a plan, and nodes read at most {MAX_LIMITS_BYTES} of them; use fewer, with `per` for \
         values alike"
    )]
    TooMany { bytes: usize },
    #[error("limits folder {} has no .yaml file", path.display())]
    NoFiles { path: PathBuf },
    #[error("two limits have the name {name}: one in {}, one in {}; rename one", first.display(), second.display())]
    TakenName { name: Arc<str>, first: PathBuf, second: PathBuf },
    #[error("{}", lines(.0))]
    Faulty(Vec<FaultyFile>),
}

/// A file with faults, and the text that has them, so that both can be shown together.
#[derive(Debug)]
pub(crate) struct FaultyFile {
    pub(crate) path: PathBuf,
    pub(crate) faults: Faults,
    pub(crate) text: String,
}

fn lines(files: &[FaultyFile]) -> String {
    let lines = files.iter().flat_map(|file| lines_of(&file.path, &file.faults, ""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Limits were not loaded: that is counted, and each line of why is told.
pub(crate) fn refuse(error: &str, load_errors: &AtomicU64) {
    load_errors.fetch_add(1, Relaxed);
    for line in shortened(error) {
        tracing::error!("limits refused, the old ones stay: {line}");
    }
}

/// The first lines, and how many more there are.
fn shortened(error: &str) -> Vec<Cow<'_, str>> {
    let mut told: Vec<Cow<'_, str>> = error.lines().take(TOLD).map(Cow::from).collect();
    match error.lines().count() - told.len() {
        0 => {}
        more => told.push(format!("{more} more; `headworks limits check` names all").into()),
    }
    told
}

/// Each fault on a line, behind the file and its level.
pub(crate) fn lines_of(path: &Path, faults: &Faults, level: &str) -> Vec<String> {
    let path = path.display();
    let told = |fault: &Fault| {
        let Fault { line, column, path: place, message } = fault;
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        format!("{path}:{line}:{column}: {level}{place}{message}")
    };
    let mut lines: Vec<String> = faults.listed().iter().map(told).collect();
    if faults.more() > 0 {
        lines.push(format!("{path}: {level}and {} more", faults.more()));
    }
    lines
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::Usage(match &error {
            LoadError::Faulty(_) => format!("faulty limits:\n{error}"),
            _ => error.to_string(),
        })
    }
}

/// What limits were read from: each file's name and bytes. Equal content is no change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content(Vec<(PathBuf, Vec<u8>)>);

/// Reads a file, or all .yaml files of a folder that are not hidden, in the order of their names.
pub(crate) fn read(path: &Path) -> Result<Content, LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(Content(vec![read_file(path)?]));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if is_limits_file(&file) {
            files.push(read_file(&file)?);
        }
    }
    if files.is_empty() {
        return Err(LoadError::NoFiles { path: path.to_owned() });
    }
    files.sort();
    Ok(Content(files))
}

/// Reads several files and folders, whose limits are meant to be in force together.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Content, LoadError> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(read(path)?.0);
    }
    Ok(Content(all))
}

/// Kubernetes keeps the real files of a ConfigMap in a hidden folder beside links to them; only the links count.
fn is_limits_file(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    !hidden && yaml && path.is_file()
}

fn read_file(path: &Path) -> Result<(PathBuf, Vec<u8>), LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    let found = fs::metadata(path).map_err(unreadable)?;
    if found.is_file() && found.len() > MAX_BYTES {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    Ok((path.to_owned(), fs::read(path).map_err(unreadable)?))
}

impl Content {
    /// Each file's name and bytes.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.0.iter().map(|(path, bytes)| (&**path, &**bytes))
    }

    /// The limits of all files together, or every fault of every file.
    pub(crate) fn parse(&self) -> Result<LimitSet, LoadError> {
        self.read_with(|_, bytes| parse_bytes(bytes))
    }

    /// The same, and whether the files confirm them.
    pub(crate) fn load(&self) -> Result<Loaded, LoadError> {
        let limits = self.parse()?;
        // Of all files together: what a folder holds is confirmed as one.
        let confirmed = self.0.iter().filter_map(|(_, bytes)| confirmation(bytes));
        let confirmed = confirmed.into_iter().any(|digest| limits.digest().to_string().starts_with(&digest));
        Ok(Loaded { limits: Arc::new(limits), confirmed })
    }

    /// The same, with a line for each limit that would be held better by other means in a fleet of so many agents.
    pub(crate) fn review(&self, agents: u32) -> Result<(LimitSet, Vec<String>), LoadError> {
        let mut warnings = Vec::new();
        let limits = self.read_with(|path, bytes| {
            let (set, advice) = review(bytes, agents)?;
            warnings.extend(advice.iter().flat_map(|advice| lines_of(path, advice, "warning: ")));
            Ok(set)
        })?;
        Ok((limits, warnings))
    }

    fn read_with(
        &self,
        mut read: impl FnMut(&Path, &[u8]) -> Result<LimitSet, Faults>,
    ) -> Result<LimitSet, LoadError> {
        let mut sets = Vec::new();
        let mut faulty = Vec::new();
        for (path, bytes) in &self.0 {
            match read(path, bytes) {
                Ok(set) => sets.push((path, set)),
                Err(faults) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    faulty.push(FaultyFile { path: path.clone(), faults, text });
                }
            }
        }
        if !faulty.is_empty() {
            return Err(LoadError::Faulty(faulty));
        }
        merge(&sets)
    }
}

/// All limits of several files. A file by itself knows its own names; here they must differ between files too.
fn merge(sets: &[(&PathBuf, LimitSet)]) -> Result<LimitSet, LoadError> {
    let mut taken: HashMap<Arc<str>, &PathBuf> = HashMap::new();
    let mut limits = Vec::new();
    for (path, set) in sets {
        for limit in set.limits() {
            if let Some(other) = taken.insert(limit.name.clone(), *path) {
                return Err(LoadError::TakenName {
                    name: limit.name.clone(),
                    first: other.clone(),
                    second: (*path).clone(),
                });
            }
            limits.push(Limit::clone(limit));
        }
    }
    let limits = LimitSet::new(limits);
    match headworks_proto::limits_bytes(&limits) {
        bytes if bytes > MAX_LIMITS_BYTES => Err(LoadError::TooMany { bytes }),
        _ => Ok(limits),
    }
}

/// Good limits, as they were read.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) limits: Arc<LimitSet>,
    /// Whether a file says by their digest that they are meant.
    pub(crate) confirmed: bool,
}

/// What is new about the files.
#[derive(Debug)]
pub(crate) enum News {
    /// They say something else, and it is good.
    Changed(Loaded),
    /// They could not be read for a while, and say the same good limits as before.
    Back,
    /// They cannot be read, or have faults.
    Refused(LoadError),
}

/// Looks at the files every second until `shutdown`; tells what is new about them.
pub(crate) async fn watch(
    path: PathBuf,
    last: Content,
    shutdown: CancellationToken,
    mut told: impl AsyncFnMut(News),
) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut known = Known { last, absent: false };
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = look.tick() => {}
        }
        if let Some(news) = known.compare(read(&path)) {
            told(news).await;
        }
    }
}

/// The files at the last look.
struct Known {
    /// What they said when they could be read last.
    last: Content,
    /// Whether they could not be read.
    absent: bool,
}

impl Known {
    fn compare(&mut self, found: Result<Content, LoadError>) -> Option<News> {
        let was_absent = std::mem::replace(&mut self.absent, found.is_err());
        match found {
            Ok(content) if content == self.last && !was_absent => None,
            Ok(content) => {
                let is_same = content == self.last;
                self.last = content;
                Some(match self.last.load() {
                    Ok(_) if is_same => News::Back,
                    Ok(loaded) => News::Changed(loaded),
                    Err(error) => News::Refused(error),
                })
            }
            // Said once, not every second.
            Err(_) if was_absent => None,
            Err(error) => Some(News::Refused(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "limits:\n  - {name: a, rate: 1/second}\n";

    #[test]
    fn a_configmap_is_read_once_through_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("..2026_01");
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("limits.yaml"), A).unwrap();
        std::os::unix::fs::symlink("..2026_01", folder.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/limits.yaml", folder.path().join("limits.yaml")).unwrap();
        assert_eq!(read(folder.path()).unwrap().parse().unwrap().limits().len(), 1);
    }

    #[test]
    fn of_many_faults_the_first_are_told_and_how_many_more() {
        let lines = |count: usize| (1..=count).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        assert_eq!(shortened(&lines(20)).len(), 20);
        let (all, told) = (lines(100), 21);
        assert_eq!(shortened(&all).len(), told);
        assert_eq!(shortened(&all)[19], "line 20");
        assert_eq!(shortened(&all)[20], "80 more; `headworks limits check` names all");
    }

    #[test]
    fn one_name_in_two_files_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), A).unwrap();
        fs::write(folder.path().join("b.yaml"), A).unwrap();
        let error = read(folder.path()).unwrap().parse().unwrap_err().to_string();
        assert!(error.contains("two limits have the name a"), "{error}");
    }

    #[test]
    fn a_file_that_is_away_for_one_look_is_told_twice_and_changes_nothing() {
        let content = |text: &str| Content(vec![("limits.yaml".into(), text.as_bytes().to_vec())]);
        let away = || read(Path::new("/nowhere/limits.yaml"));
        let mut known = Known { last: content(A), absent: false };
        assert!(known.compare(Ok(content(A))).is_none());
        assert!(matches!(known.compare(away()), Some(News::Refused(LoadError::Unreadable { .. }))));
        assert!(known.compare(away()).is_none());
        assert!(matches!(known.compare(Ok(content(A))), Some(News::Back)));
        assert!(known.compare(Ok(content(A))).is_none());

        assert!(matches!(known.compare(Ok(content("limits: 3\n"))), Some(News::Refused(_))));
        assert!(known.compare(Ok(content("limits: 3\n"))).is_none());
        known.compare(away());
        let faulty = known.compare(Ok(content("limits: 3\n")));
        assert!(matches!(faulty, Some(News::Refused(LoadError::Faulty(_)))), "{faulty:?}");
        assert!(matches!(known.compare(Ok(content(A))), Some(News::Changed(_))));
    }

    #[test]
    fn faults_of_all_files_are_told_together() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), "").unwrap();
        fs::write(folder.path().join("b.yaml"), "limits: 3\n").unwrap();
        let error = read(folder.path()).unwrap().parse().unwrap_err().to_string();
        assert!(error.contains("a.yaml:") && error.contains("b.yaml:"), "{error}");
    }
}
