// SPDX-License-Identifier: MIT OR Apache-2.0

//! The parts of a control group's path, and the names that container runtimes give to their objects.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tracefs::names_in;

/// The number of digits of a long id that are shown to people.
pub const SHORT: usize = 12;

/// The number of digits of a container's id.
const ID: usize = 64;

/// The owners that the path of a control group names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place<'a> {
    /// The id of the innermost container.
    pub container: Option<&'a str>,
    /// The id of the container's pod, with dashes as in Kubernetes.
    pub pod: Option<String>,
    /// The innermost systemd unit.
    pub unit: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// Parses a path that was made by the systemd or cgroupfs drivers of docker, podman, containerd and CRI-O.
    pub fn of(path: &'a str) -> Self {
        let mut place = Self::default();
        for part in path.split('/') {
            let name = part.strip_suffix(".scope").unwrap_or(part);
            let runtimes = ["docker-", "libpod-", "cri-containerd-", "crio-", ""];
            let id = runtimes
                .iter()
                .find_map(|runtime| name.strip_prefix(runtime))
                .filter(|id| id.len() == ID && is_hex(id));
            if id.is_some() {
                place.container = id;
            }
            let slice = part.strip_suffix(".slice").unwrap_or(part);
            let podman = slice
                .rsplit_once("libpod_pod_")
                .map(|(_, id)| id.to_owned());
            let uid = match slice.rsplit_once("-pod") {
                Some((_, uid)) => Some(uid),
                None => slice.strip_prefix("pod"),
            };
            let uid = uid.map(|uid| uid.replace('_', "-"));
            let is_uid = |uid: &String| uid.len() >= 32 && is_hex(&uid.replace('-', ""));
            if let Some(uid) = podman.or(uid).filter(is_uid) {
                place.pod = Some(uid);
            }
            if [".service", ".scope", ".slice"]
                .iter()
                .any(|end| part.ends_with(end))
            {
                place.unit = Some(part);
            }
        }
        place
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the path of a task from its file `cgroup`, which has a line for each hierarchy: the path that names a
/// container or a pod, or else that of version 2, or else that of systemd.
pub fn path_of(file: &str) -> &str {
    let lines = || {
        file.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        })
    };
    let says = |&(_, _, path): &(&str, &str, &str)| {
        let place = Place::of(path);
        place.container.is_some() || place.pod.is_some()
    };
    let of = |number: &str, name: &str| {
        lines().find(|line| (line.0 == number || name == line.1) && line.2 != "/")
    };
    let found = lines().find(says).or_else(|| of("0", "name=systemd"));
    found.map_or("/", |(_, _, path)| path)
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Returns the name of the container with this id, from the files of the runtime that runs it: docker, podman and
/// CRI-O, Kubernetes, containerd.
pub fn container(root: &Path, id: &str) -> Option<String> {
    let docker = root.join("var/lib/docker/containers").join(id);
    if let Some(config) = json(&docker.join("config.v2.json")) {
        return Some(config["Name"].as_str()?.trim_start_matches('/').to_owned());
    }
    let storage = root.join("var/lib/containers/storage");
    for directory in names_in(&storage)
        .iter()
        .filter(|name| name.ends_with("-containers"))
    {
        let all = json(&storage.join(directory).join("containers.json"));
        let all = all.as_ref().and_then(Value::as_array).into_iter().flatten();
        let mut own = all.filter(|one| one["id"] == id);
        if let Some(name) = own.find_map(|one| one["names"][0].as_str()) {
            return Some(name.to_owned());
        }
    }
    // The name of a log is POD_NAMESPACE_CONTAINER-ID.log.
    let log = format!("-{id}.log");
    for name in names_in(&root.join("var/log/containers")) {
        let parts = name.strip_suffix(&log).map(|name| name.splitn(3, '_'));
        if let Some([pod, namespace, container]) = parts.map(Iterator::collect::<Vec<_>>).as_deref()
        {
            return Some(format!("{namespace}/{pod}/{container}"));
        }
    }
    let tasks = root.join("run/containerd/io.containerd.runtime.v2.task");
    names_in(&tasks).iter().find_map(|namespace| {
        let config = json(&tasks.join(namespace).join(id).join("config.json"))?;
        let said = ["io.kubernetes.cri.container-name", "nerdctl/name"];
        let mut names = said
            .iter()
            .filter_map(|said| config["annotations"][said].as_str());
        names.next().map(str::to_owned)
    })
}

/// Returns the namespace and the name of the pod with this id, from the logs that Kubernetes keeps.
pub fn pod(root: &Path, uid: &str) -> Option<String> {
    let names = names_in(&root.join("var/log/pods"));
    names.iter().find_map(|name| {
        // The name of a directory is NAMESPACE_NAME_UID.
        let name = name.strip_suffix(uid)?.strip_suffix('_')?;
        Some(name.replacen('_', "/", 1))
    })
}

/// Returns the name of the user with this id.
pub fn user(root: &Path, uid: &str) -> Option<String> {
    let users = fs::read_to_string(root.join("etc/passwd")).ok()?;
    users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1) == Some(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whose::tests::{Tree, WEB};

    const UID: &str = "8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f";

    #[test]
    fn paths_say_who_is_there() {
        let flat = UID.replace('-', "_");
        let systemd = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{flat}.slice/cri-containerd-{WEB}.scope"
        );
        let guaranteed = format!("/kubepods.slice/kubepods-pod{flat}.slice/crio-{WEB}.scope");
        let cgroupfs = format!("/kubepods/besteffort/pod{UID}/{WEB}");
        let hash = "0123456789abcdef0123456789abcdef";
        let nested = format!("/docker/{}/docker/{WEB}", WEB.replace('f', "a"));
        let all = [
            (systemd, Some(WEB), Some(UID)),
            (guaranteed, Some(WEB), Some(UID)),
            (cgroupfs, Some(WEB), Some(UID)),
            (format!("/kubepods/pod{hash}/{WEB}"), Some(WEB), Some(hash)),
            (format!("/system.slice/docker-{WEB}.scope"), Some(WEB), None),
            (format!("/docker/{WEB}"), Some(WEB), None),
            (
                format!("/machine.slice/libpod-{WEB}.scope/container"),
                Some(WEB),
                None,
            ),
            (format!("/libpod_parent/libpod-{WEB}"), Some(WEB), None),
            (
                format!("/machine.slice/libpod-conmon-{WEB}.scope"),
                None,
                None,
            ),
            (
                format!("/machine.slice/machine-libpod_pod_{WEB}.slice"),
                None,
                Some(WEB),
            ),
            (nested, Some(WEB), None),
            ("/system.slice/podman.service".into(), None, None),
            ("/user.slice/pod-abc.slice".into(), None, None),
            ("/".into(), None, None),
        ];
        for (path, container, pod) in &all {
            let place = Place::of(path);
            assert_eq!(
                (place.container, place.pod.as_deref()),
                (*container, *pod),
                "{path}"
            );
        }
        let unit = |path| Place::of(path).unit;
        assert_eq!(unit("/system.slice/cron.service"), Some("cron.service"));
        assert_eq!(unit("/a/b"), None);
    }

    #[test]
    fn a_task_has_a_path_in_each_hierarchy() {
        let unified = "0::/system.slice/cron.service\n";
        assert_eq!(path_of(unified), "/system.slice/cron.service");
        let hybrid = format!("12:pids:/docker/{WEB}\n1:name=systemd:/docker/{WEB}\n0::/system.slice/containerd.service\n");
        assert_eq!(path_of(&hybrid), format!("/docker/{WEB}"));
        let first = "4:memory:/user.slice\n1:name=systemd:/user.slice/session-1.scope\n0::/\n";
        assert_eq!(path_of(first), "/user.slice/session-1.scope");
        for none in ["0::/\n", "", "nonsense\n"] {
            assert_eq!(path_of(none), "/");
        }
        assert_eq!(path_of("0::/a:b\n"), "/a:b");
    }

    /// Uses directories like those of docker 27, podman 5, Kubernetes 1.31 and containerd 2.
    #[test]
    fn runtimes_name_containers() {
        let tree = Tree::new("runtimes");
        let id = |digit: char| digit.to_string().repeat(64);
        let docker = format!("var/lib/docker/containers/{}/config.v2.json", id('1'));
        tree.file(&docker, "{\"State\":{},\"Name\":\"/db\"}");
        let podman = "var/lib/containers/storage/overlay-containers/containers.json";
        let text = format!(
            "[{{\"id\":\"{}\",\"names\":[\"cache\"]}},{{\"id\":\"{}\"}}]",
            id('2'),
            id('3')
        );
        tree.file(podman, &text);
        let log = format!("var/log/containers/shop-0_prod_cart-{}.log", id('4'));
        tree.file(&log, "");
        let runtime = "run/containerd/io.containerd.runtime.v2.task";
        let cri = "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"proxy\"}}";
        tree.file(&format!("{runtime}/k8s.io/{}/config.json", id('5')), cri);
        tree.file(&format!("{runtime}/moby/{}/config.json", id('6')), "{}");
        tree.file(
            &format!("{runtime}/moby/{}/config.json", id('7')),
            "{\"annot",
        );
        let name = |digit| container(&tree.0, &id(digit));
        assert_eq!(name('1').as_deref(), Some("db"));
        assert_eq!(name('2').as_deref(), Some("cache"));
        assert_eq!(name('4').as_deref(), Some("prod/shop-0/cart"));
        assert_eq!(name('5').as_deref(), Some("proxy"));
        for nameless in ['3', '6', '7', '8'] {
            assert_eq!(name(nameless), None);
        }
        tree.file(&format!("var/log/pods/prod_shop-0_{UID}/cart/0.log"), "");
        assert_eq!(pod(&tree.0, UID).as_deref(), Some("prod/shop-0"));
        assert_eq!(pod(&tree.0, "1234"), None);
    }
}
