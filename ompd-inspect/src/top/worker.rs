//! The thread that looks at the processes, so that keys are answered meanwhile.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use ompd_process::OpenOptions;
use ompd_report::top::Refresh;
use ompd_runtime::LayoutsFrom;

use crate::inspecting::Layouts;
use crate::output::Failure;
use crate::top::looking::Looker;

/// What is asked of the thread.
#[derive(Debug)]
pub enum Request {
    /// A look at each process.
    Look {
        /// Time between two looks.
        interval: Duration,
    },
    /// The stack of a thread at the last look.
    Stack {
        /// Its process.
        pid: i32,
        /// Its id.
        lwp: i32,
        /// Columns of the terminal.
        width: u16,
    },
}

/// What it answers.
#[derive(Debug)]
pub enum Reply {
    /// What a look has found.
    Refresh(Refresh),
    /// The lines of a stack.
    Stack(Vec<String>),
    /// No process can be opened.
    Failed(Failure),
}

/// The thread. It is not waited for when the program ends: the kernel lets a process continue whose tracer ends.
#[derive(Debug)]
pub struct Worker {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    wake: PipeReader,
}

impl Worker {
    /// Starts the thread, which opens the processes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(pids: Vec<i32>, options: OpenOptions, layouts: Layouts) -> io::Result<Worker> {
        let (requests, wanted) = channel();
        let (answers, replies) = channel();
        let (wake, ready) = io::pipe()?;
        let work = move || work(&pids, &options, layouts.from(), &wanted, &answers, ready);
        std::thread::Builder::new().name("looks".into()).spawn(work)?;
        Ok(Worker { requests, replies, wake })
    }

    /// Asks for something. A thread that has ended says so in [`Worker::reply`].
    pub fn ask(&self, request: Request) {
        let _ = self.requests.send(request);
    }

    /// Takes an answer, if there is one.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn reply(&mut self) -> Result<Option<Reply>, Failure> {
        match self.replies.try_recv() {
            Ok(reply) => {
                // One byte for each reply: it does not block for long.
                let _ = self.wake.read(&mut [0]);
                Ok(Some(reply))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Failure::new("the thread that reads the processes has ended")),
        }
    }
}

impl AsFd for Worker {
    /// Readable if there is an answer, or the thread has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn work(
    pids: &[i32],
    options: &OpenOptions,
    layouts: LayoutsFrom<'_>,
    wanted: &Receiver<Request>,
    answers: &Sender<Reply>,
    mut ready: PipeWriter,
) {
    let mut answer = |reply: Reply| answers.send(reply).is_ok() && ready.write_all(&[0]).is_ok();
    let mut looker = match Looker::open(pids, options, layouts) {
        Ok(looker) => looker,
        Err(failure) => {
            answer(Reply::Failed(failure));
            return;
        }
    };
    while let Ok(request) = wanted.recv() {
        let reply = match request {
            Request::Look { interval } => Reply::Refresh(looker.look(interval)),
            Request::Stack { pid, lwp, width } => Reply::Stack(looker.stack(pid, lwp, width)),
        };
        if !answer(reply) {
            return;
        }
    }
}
