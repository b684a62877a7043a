//! Images that come with a job: for this job alone, or once for all jobs of the node.
//!
//! A node keeps images under their digest in `TULPAR_NODE_CACHE`, else in the folder of a node that is played with one, else in
//! the user's cache folder. Whoever needs one that
//! is not there takes its lock and pulls it; others wait, and find it. A file gets its name when its content is right,
//! so that what is under a name can be used without a look at it.

use super::files::Files;
use super::node::{self, NODE_FOLDER};
use super::{ScriptError, say};
use crate::objects;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tulpar_core::job::{Ending, InputFile, Source};

/// How often somebody who waits for another job's pull looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

impl Files {
    /// Gives where the image is, or will be when the job's files are pulled, and what was pulled for it now.
    pub(super) fn bring_image(
        &mut self,
        mut file: InputFile,
        once: bool,
    ) -> Result<(InputFile, (u64, u64)), ScriptError> {
        let Source::Remote(url) = &file.source else { return Ok((file, (0, 0))) };
        let Some(folder) = once.then(|| self.image_folder()).flatten() else {
            self.with_every_job.insert(self.path_of(&file));
            let mut files = [file];
            self.want(&mut files);
            let [file] = files;
            return Ok((file, (0, 0)));
        };
        let to = objects::path(&folder, &file.digest);
        let pulled = self.keep_on_node(&to, url.clone(), &file)?;
        file.source = Source::Path(to.to_string_lossy().into_owned());
        Ok((file, pulled))
    }

    fn image_folder(&self) -> Option<PathBuf> {
        let own = || self.node.as_ref().map(|node| node.join("images"));
        let of_user = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/tulpar/images"));
        node::named().or_else(own).or_else(of_user)
    }

    fn keep_on_node(&mut self, to: &Path, url: String, file: &InputFile) -> Result<(u64, u64), ScriptError> {
        if is_whole(to, file) {
            return Ok((0, 0));
        }
        let lock = self.lock(&beside(to, "lock"))?;
        if is_whole(to, file) {
            return Ok((0, 0));
        }
        let part = beside(to, "part");
        // Of a job that was killed.
        let _ = std::fs::remove_file(&part);
        let pulled = self.pull_all(vec![(part.clone(), (url, file.clone()))])?;
        let written = || File::open(&part)?.sync_all();
        written()
            .and_then(|()| std::fs::rename(&part, to))
            .map_err(ScriptError::io(format!("keeping the image {}", to.display())))?;
        drop(lock);
        Ok(pulled)
    }

    /// Held until it is dropped, or its holder dies.
    fn lock(&self, path: &Path) -> Result<File, ScriptError> {
        let failed =
            || ScriptError::io(format!("locking {} (set {NODE_FOLDER} to a folder of a local disk)", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed())?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed())?;
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed()(error.into())),
            }
            if self.stopped.load(Ordering::Relaxed) {
                return Err(ScriptError::Member { name: "the wait for an image".into(), ending: Ending::Preempted });
            }
            if !std::mem::replace(&mut told, true) {
                say("waiting for another job on this node, which pulls the same image");
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Its content was checked before it got its name; the size is a check of the disk.
fn is_whole(path: &Path, file: &InputFile) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() == file.size)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
