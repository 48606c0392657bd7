// SPDX-License-Identifier: MIT OR Apache-2.0

//! Owners of tasks, from files of this machine: the process, the user, the control group, its container and pod.

pub mod names;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use names::Place;

/// The interval at which tasks are looked up. A task that lives shorter may never be seen.
const PERIOD: Duration = Duration::from_millis(750);

/// The mount point of control groups, unless the list of mounts has another one.
const CGROUPS: &str = "/sys/fs/cgroup";

/// A task with its owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The process of the task.
    pub tgid: u64,
    /// The name of the process.
    pub comm: String,
    /// The user of the task.
    pub uid: u32,
    /// The control group of the task, as a path from the root of the hierarchy.
    pub cgroup: String,
}

/// The tasks and control groups that were seen, including those that have ended.
#[derive(Debug, Default)]
pub struct Seen {
    root: PathBuf,
    tasks: HashMap<u64, Arc<Task>>,
    /// The paths of control groups by inode.
    cgroups: HashMap<u64, String>,
    /// The names of containers, pods and users that were asked for since the last look-up.
    names: RefCell<HashMap<(Kind, String), Option<String>>>,
}

/// A kind of object with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Container,
    Pod,
    User,
}

impl Seen {
    /// Returns the tasks of the machine whose files are below `root`, `/` for this one.
    pub fn of(root: &Path) -> Self {
        let mut seen = Self {
            root: root.into(),
            ..Self::default()
        };
        let idle = Task {
            tgid: 0,
            comm: "swapper".into(),
            uid: 0,
            cgroup: "/".into(),
        };
        seen.tasks.insert(0, idle.into());
        seen.look();
        seen
    }

    /// Looks up all tasks and control groups that exist now.
    pub fn look(&mut self) {
        self.names.get_mut().clear();
        for (tgid, path) in numbered(&self.root.join("proc")) {
            let text = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
            let (Ok(metadata), cgroup) = (fs::metadata(&path), text("cgroup")) else {
                continue;
            };
            let task = Arc::new(Task {
                tgid,
                comm: text("comm").trim_end_matches('\n').to_owned(),
                uid: metadata.uid(),
                cgroup: names::path_of(&cgroup).to_owned(),
            });
            // The task has ended meanwhile.
            if cgroup.is_empty() && task.comm.is_empty() {
                continue;
            }
            let threads = numbered(&path.join("task"));
            self.tasks
                .extend(threads.map(|(tid, _)| (tid, Arc::clone(&task))));
        }
        let mounts = fs::read_to_string(self.root.join("proc/self/mounts")).unwrap_or_default();
        let place = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next()? == "cgroup2").then(|| place.replace("\\040", " "))
        });
        let place = place.unwrap_or_else(|| CGROUPS.into());
        let root = self.root.join(place.trim_start_matches('/'));
        self.walk(&root, &root);
    }

    fn walk(&mut self, root: &Path, directory: &Path) {
        let Ok(metadata) = fs::metadata(directory) else {
            return;
        };
        let path = directory.strip_prefix(root).unwrap_or(directory);
        let path = format!("/{}", path.display());
        self.cgroups.insert(metadata.ino(), path);
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            self.walk(root, &entry.path());
        }
    }

    /// Returns the task with this number that was seen last.
    pub fn task(&self, tid: u64) -> Option<&Task> {
        self.tasks.get(&tid).map(Arc::as_ref)
    }

    /// Returns the control group with this inode, as the kernel numbers them.
    pub fn cgroup(&self, inode: u64) -> Option<&str> {
        self.cgroups.get(&inode).map(String::as_str)
    }

    /// Returns the name of a control group: its container, or its systemd unit, or its path.
    pub fn cgroup_name(&self, path: &str) -> String {
        let place = Place::of(path);
        match (place.container, place.unit) {
            (Some(id), _) => self
                .container(id)
                .unwrap_or_else(|| id.chars().take(names::SHORT).collect()),
            (None, Some(unit)) => unit.to_owned(),
            (None, None) => path.to_owned(),
        }
    }

    /// Returns the name of a control group's pod: as in Kubernetes, or the beginning of the pod's id.
    pub fn pod_name(&self, path: &str) -> Option<String> {
        let uid = Place::of(path).pod?;
        let name = self.pod(&uid);
        Some(name.unwrap_or_else(|| uid.chars().take(names::SHORT).collect()))
    }

    /// Returns the name of a user.
    pub fn user_name(&self, uid: u32) -> String {
        let name = self.known(Kind::User, &uid.to_string(), |uid| {
            names::user(&self.root, uid)
        });
        name.unwrap_or_else(|| uid.to_string())
    }

    fn container(&self, id: &str) -> Option<String> {
        self.known(Kind::Container, id, |id| names::container(&self.root, id))
    }

    fn pod(&self, uid: &str) -> Option<String> {
        self.known(Kind::Pod, uid, |uid| names::pod(&self.root, uid))
    }

    /// Returns the name of an object, kept until the next look-up so that many rows read its file once.
    fn known(
        &self,
        kind: Kind,
        number: &str,
        read: impl FnOnce(&str) -> Option<String>,
    ) -> Option<String> {
        let mut known = self.names.borrow_mut();
        let name = known.entry((kind, number.to_owned()));
        name.or_insert_with(|| read(number)).clone()
    }

    /// Returns whether the user's text means a control group or one above it: by a path, a part of one such as a unit
    /// with or without its suffix, the name of a container or the beginning of its id, or a pod.
    pub fn is_meant(&self, path: &str, typed: &str) -> bool {
        let typed = typed.strip_prefix(CGROUPS).unwrap_or(typed);
        if typed.starts_with('/') {
            let rest = path.strip_prefix(typed.trim_end_matches('/'));
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        let is_part = |part: &str| {
            part == typed || part.rsplit_once('.').is_some_and(|(name, _)| name == typed)
        };
        if path.split('/').any(is_part) {
            return true;
        }
        let place = Place::of(path);
        let begins = |id: &str| typed.len() >= names::SHORT && id.starts_with(typed);
        let container = place
            .container
            .is_some_and(|id| begins(id) || self.container(id).is_some_and(|name| name == typed));
        container
            || place.pod.is_some_and(|uid| {
                let name = self.pod(&uid);
                let short =
                    |name: &String| name.split_once('/').is_some_and(|(_, pod)| pod == typed);
                begins(&uid) || name.is_some_and(|name| name == typed || short(&name))
            })
    }

    /// Returns whether the user's text means any control group that was seen.
    pub fn has_meant(&self, typed: &str) -> bool {
        let of_tasks = self.tasks.values().map(|task| task.cgroup.as_str());
        let mut all = self.cgroups.values().map(String::as_str).chain(of_tasks);
        all.any(|path| self.is_meant(path, typed))
    }
}

/// Iterates over the subdirectories whose names are numbers.
fn numbered(directory: &Path) -> impl Iterator<Item = (u64, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// Returns the threads of a process; none if the process does not exist.
pub fn threads(root: &Path, pid: u64) -> Vec<u64> {
    let path = root.join("proc").join(pid.to_string()).join("task");
    let mut threads: Vec<u64> = numbered(&path).map(|(tid, _)| tid).collect();
    threads.sort_unstable();
    threads
}

/// Looks tasks up again and again, in a thread, until the returned value is dropped.
pub fn watch(root: &Path) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::of(root)));
    let watched = Arc::downgrade(&seen);
    thread::spawn(move || loop {
        thread::sleep(PERIOD);
        match watched.upgrade() {
            Some(seen) => seen.lock().unwrap_or_else(PoisonError::into_inner).look(),
            None => break,
        }
    });
    seen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A directory with files for a test, removed when it is dropped.
    pub(crate) struct Tree(pub(crate) PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("rhist-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(&root).unwrap();
            Self(root)
        }

        pub(crate) fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Adds a process with these threads, with the files of /proc.
        pub(crate) fn process(&self, tgid: u64, comm: &str, cgroup: &str, threads: &[u64]) {
            self.file(&format!("proc/{tgid}/comm"), &format!("{comm}\n"));
            self.file(&format!("proc/{tgid}/cgroup"), cgroup);
            for tid in threads {
                self.file(&format!("proc/{tgid}/task/{tid}/comm"), comm);
            }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub(crate) const WEB: &str = "f00dfeed0123456789abcdef0123456789abcdef0123456789abcdef01234567";

    /// Returns a machine with docker's container `web`, a unit, and a shell.
    pub(crate) fn machine(name: &str) -> Tree {
        let tree = Tree::new(name);
        let docker = format!("0::/system.slice/docker-{WEB}.scope\n");
        tree.process(100, "nginx", &docker, &[100, 101]);
        tree.process(200, "cron", "0::/system.slice/cron.service\n", &[200]);
        tree.process(
            300,
            "bash",
            "0::/user.slice/user-0.slice/session-1.scope\n",
            &[300],
        );
        let config = format!("var/lib/docker/containers/{WEB}/config.v2.json");
        tree.file(&config, "{\"ID\":\"x\",\"Name\":\"/web\"}");
        tree.file(
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/bash\nwww:x:33:33::/:/bin/sh\n",
        );
        let group = format!("sys/fs/cgroup/system.slice/docker-{WEB}.scope/cgroup.procs");
        tree.file(&group, "100\n");
        tree
    }

    #[test]
    fn tasks_have_owners() {
        let tree = machine("owners");
        let mut seen = Seen::of(&tree.0);
        assert_eq!(seen.task(101).unwrap().tgid, 100);
        assert_eq!(seen.task(101).unwrap().comm, "nginx");
        assert_eq!(seen.task(0).unwrap().comm, "swapper");
        assert_eq!(seen.task(9), None);
        let name = |seen: &Seen, tid| seen.cgroup_name(&seen.task(tid).unwrap().cgroup);
        assert_eq!(name(&seen, 101), "web");
        assert_eq!(name(&seen, 200), "cron.service");
        assert_eq!(name(&seen, 300), "session-1.scope");
        // The files are read once between two look-ups.
        let config = tree
            .0
            .join(format!("var/lib/docker/containers/{WEB}/config.v2.json"));
        fs::remove_file(config).unwrap();
        assert_eq!(name(&seen, 101), "web");
        assert_eq!(seen.user_name(33), "www");
        assert_eq!(seen.user_name(34), "34");
        let inode = fs::metadata(tree.0.join("sys/fs/cgroup/system.slice"))
            .unwrap()
            .ino();
        assert_eq!(seen.cgroup(inode), Some("/system.slice"));
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup/system.slice cgroup2 rw 0 0\n";
        tree.file("proc/self/mounts", mounts);
        assert_eq!(Seen::of(&tree.0).cgroup(inode), Some("/"));
        // A task that has ended is still known, and a new one is found.
        fs::remove_dir_all(tree.0.join("proc/200")).unwrap();
        tree.process(100, "nginx", "0::/x\n", &[102]);
        seen.look();
        assert_eq!(name(&seen, 200), "cron.service");
        assert_eq!(seen.task(102).unwrap().cgroup, "/x");
        assert_eq!(seen.cgroup_name(&format!("/docker/{WEB}")), WEB[..12]);
    }

    #[test]
    fn one_control_group_has_several_names() {
        let tree = machine("meant");
        let seen = Seen::of(&tree.0);
        let path = format!("/system.slice/docker-{WEB}.scope");
        for typed in [
            "web",
            &WEB[..12],
            WEB,
            &path,
            "/system.slice",
            "system",
            "system.slice",
        ] {
            assert!(seen.is_meant(&path, typed), "{typed}");
        }
        let inner = format!("{path}/init.scope");
        assert!(seen.is_meant(&inner, &format!("/sys/fs/cgroup{path}")));
        for typed in ["we", "f00d", "/system", "cron", "nginx", "pod"] {
            assert!(!seen.is_meant(&path, typed), "{typed}");
        }
        assert!(seen.has_meant("cron") && seen.has_meant("web") && !seen.has_meant("db"));
    }

    #[test]
    fn threads_that_come_are_seen() {
        let tree = machine("watched");
        assert_eq!(threads(&tree.0, 100), [100, 101]);
        assert_eq!(threads(&tree.0, 7), [0; 0]);
        let seen = watch(&tree.0);
        tree.process(100, "nginx", "0::/x\n", &[103]);
        let begin = std::time::Instant::now();
        while seen.lock().unwrap().task(103).is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
    }
}
