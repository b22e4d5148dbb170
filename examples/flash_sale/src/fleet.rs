//! Starts the workers, as tasks or as processes, and brings their reports together.

use std::io::{Write, stdout};
use std::process::Stdio;

use fencelock::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::Failure;
use crate::job::Job;
use crate::turn::Turn;
use crate::worker;

/// All workers of a sale.
pub(crate) struct Fleet {
    workers: Vec<Worker>,
    killed: Option<usize>,
}

enum Worker {
    Task(JoinHandle<Result<(), Failure>>),
    /// The process and the task that reads its reports.
    Process(Child, JoinHandle<Result<(), Failure>>),
}

impl Fleet {
    /// Tasks of this process; they share one client. The reports end when all workers have.
    pub(crate) async fn of_tasks(
        url: &str,
        jobs: Vec<Job>,
    ) -> Result<(Self, UnboundedReceiver<Turn>), Failure> {
        let client = Client::connect(url).await?;
        let (sender, reports) = unbounded_channel();
        let start = |job: Job| {
            let (client, sender) = (client.clone(), sender.clone());
            Worker::Task(tokio::spawn(async move {
                worker::run(&client, &job, |turn| Ok(sender.send(turn)?)).await
            }))
        };
        Ok((Fleet { workers: jobs.into_iter().map(start).collect(), killed: None }, reports))
    }

    /// Processes, each with a client of its own. They are this program, run again.
    pub(crate) async fn of_processes(
        url: &str,
        jobs: Vec<Job>,
    ) -> Result<(Self, UnboundedReceiver<Turn>), Failure> {
        Client::connect(url).await?.close().await; // a wrong URL is told once, not by each worker
        let (sender, reports) = unbounded_channel();
        let mut workers = Vec::new();
        for job in jobs {
            let mut child = Command::new(std::env::current_exe()?)
                .args(job.to_arguments())
                .env("FENCELOCK_URL", url) // not an argument: it may hold a password
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let reading = tokio::spawn(read_reports(child.stdout.take(), sender.clone()));
            workers.push(Worker::Process(child, reading));
        }
        Ok((Fleet { workers, killed: None }, reports))
    }

    /// Ends a worker without giving it a chance to clean up.
    pub(crate) async fn kill(&mut self, number: usize) -> Result<(), Failure> {
        self.killed = Some(number);
        match &mut self.workers[number] {
            Worker::Task(task) => task.abort(),
            Worker::Process(child, _) => child.kill().await?, // SIGKILL
        }
        Ok(())
    }

    /// Waits for all workers; an error if one failed that was not killed.
    pub(crate) async fn join(self) -> Result<(), Failure> {
        for (number, worker) in self.workers.into_iter().enumerate() {
            let ended = match worker {
                Worker::Task(task) => task.await.unwrap_or_else(|error| Err(error.into())),
                Worker::Process(mut child, reading) => {
                    reading.await??;
                    let status = child.wait().await?;
                    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
                }
            };
            if self.killed != Some(number) {
                ended.map_err(|error| format!("worker {number} failed: {error}"))?;
            }
        }
        Ok(())
    }
}

async fn read_reports(
    output: Option<tokio::process::ChildStdout>,
    sender: UnboundedSender<Turn>,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(output.ok_or("no pipe to a worker")?).lines();
    while let Some(line) = lines.next_line().await? {
        sender.send(line.parse()?)?;
    }
    Ok(())
}

/// The whole life of a worker process. It ends early when nobody reads its reports any more.
pub(crate) async fn be_worker(job: &Job) -> Result<(), Failure> {
    let client = Client::from_env().await?;
    worker::run(&client, job, |turn| Ok(writeln!(stdout(), "{turn}")?)).await?;
    client.close().await;
    Ok(())
}
