//! Limits from a folder as Kubernetes mounts a ConfigMap: links through a hidden folder, which is swapped whole.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Node, eventually};

/// A mounted ConfigMap with one file.
struct Mount {
    folder: TempDir,
    version: u32,
}

impl Mount {
    fn new(rate: u32) -> Self {
        let mut mount = Self { folder: tempfile::tempdir().unwrap(), version: 0 };
        mount.swap(rate);
        symlink("..data/limits.yaml", mount.path().join("limits.yaml")).unwrap();
        mount
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn version(&self) -> PathBuf {
        self.path().join(format!("..2025_{:02}", self.version))
    }

    /// The next version in the place of the last, which goes.
    fn swap(&mut self, rate: u32) {
        let old = self.version();
        self.version += 1;
        fs::create_dir(self.version()).unwrap();
        let text = format!("limits: [{{name: t, match: {{service: t}}, rate: {rate}/minute}}]\n");
        fs::write(self.version().join("limits.yaml"), text).unwrap();
        symlink(self.version().file_name().unwrap(), self.path().join("..data_tmp")).unwrap();
        fs::rename(self.path().join("..data_tmp"), self.path().join("..data")).unwrap();
        if old.exists() {
            fs::remove_dir_all(old).unwrap();
        }
    }
}

fn controller(limits: &Path) -> Node {
    Node::start("controller", "c", &["--limits".to_owned(), limits.display().to_string()])
}

#[track_caller]
fn has(node: &Node, rate: u32, generation: u64) {
    eventually(&format!("{rate}/minute is in force"), Duration::from_secs(5), || {
        let status = node.status();
        let limit = status.limit("t").cloned().unwrap_or_default();
        (limit["amount"] != rate || status.0["limits_generation"] != generation).then(|| status.0.to_string())
    });
}

#[test]
fn each_swap_is_one_generation_and_a_touch_is_none() {
    for of_folder in [true, false] {
        let mut mount = Mount::new(3);
        let path = if of_folder { mount.path().to_owned() } else { mount.path().join("limits.yaml") };
        let node = controller(&path);
        has(&node, 3, 1);
        for (rate, generation) in [(1, 2), (5, 3), (2, 4)] {
            mount.swap(rate);
            has(&node, rate, generation);
        }
        let file = mount.version().join("limits.yaml");
        let touched = format!("touch {0} && chmod 600 {0}", file.display());
        assert!(Command::new("sh").args(["-c", &touched]).status().unwrap().success());
        // The content is looked at every second.
        std::thread::sleep(Duration::from_millis(2500));
        has(&node, 2, 4);
        assert_eq!(node.scrape().value("headworks_limits_load_errors_total"), 0.0);
    }
}
