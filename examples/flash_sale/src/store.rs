//! The store that all workers share: a folder with the stock and the orders.
//!
//! It stands for the database of a shop. As there, one statement is atomic by itself, and takes a
//! moment to get there and back. What is *not* atomic is a read and the write that follows from
//! it: that is what the workers need the lock for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;

/// The way to the database and back.
const ROUND_TRIP: Duration = Duration::from_micros(100);

#[derive(Clone)]
pub(crate) struct Store {
    stock: PathBuf,
    orders: PathBuf,
}

/// An order as the store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The fencing token of the buyer's lease; none without a lock.
    pub(crate) token: Option<u64>,
}

impl Store {
    /// A new store in an empty folder.
    pub(crate) fn create(folder: &Path, stock: u64) -> io::Result<Self> {
        let store = Self::open(folder);
        fs::write(&store.stock, format!("{stock} 0"))?;
        fs::write(&store.orders, "")?;
        Ok(store)
    }

    pub(crate) fn open(folder: &Path) -> Self {
        Store { stock: folder.join("stock"), orders: folder.join("orders") }
    }

    /// The units left. With a token, this is the first step of a change, and from now on nobody
    /// with a lower token changes anything: he cannot know what we are about to write.
    pub(crate) async fn read_stock(&self, token: Option<u64>) -> io::Result<u64> {
        self.statement(move |row| {
            row.highest_token = row.highest_token.max(token.unwrap_or(0));
            Ok(row.left)
        })
        .await
    }

    /// Sets the units left and appends the order; false if the order was refused because somebody
    /// with a higher token has been here. The check is part of the same atomic step as the write,
    /// as in `UPDATE … SET left = ?, token = ? WHERE product = 123 AND token <= ?`.
    pub(crate) async fn place_order(
        &self,
        worker: usize,
        token: Option<u64>,
        left: u64,
    ) -> io::Result<bool> {
        let orders = self.orders.clone();
        self.statement(move |row| {
            if token.is_some_and(|token| token < row.highest_token) {
                return Ok(false);
            }
            row.left = left;
            row.highest_token = row.highest_token.max(token.unwrap_or(0));
            let line = format!("{} worker-{worker}\n", token.unwrap_or(0));
            OpenOptions::new().append(true).open(orders)?.write_all(line.as_bytes())?;
            Ok(true)
        })
        .await
    }

    /// All orders, oldest first.
    pub(crate) fn orders(&self) -> io::Result<Vec<Order>> {
        let token = |line: &str| line.split(' ').next().and_then(|token| token.parse().ok());
        let text = fs::read_to_string(&self.orders)?;
        Ok(text.lines().map(|line| Order { token: token(line).filter(|t| *t > 0) }).collect())
    }

    /// One atomic statement on the row of product 123, off the threads that renew leases.
    async fn statement<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Row) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = self.stock.clone();
        let work = move || {
            thread::sleep(ROUND_TRIP);
            let mut file = File::options().read(true).write(true).open(path)?;
            file.lock()?; // the database's own row lock, until the file is closed
            let before = Row::load(&mut file)?;
            let mut row = before;
            let result = change(&mut row)?;
            if row != before {
                row.save(&mut file)?;
            }
            Ok(result)
        };
        spawn_blocking(work).await.map_err(io::Error::other)?
    }
}

/// What the stock file holds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Row {
    left: u64,
    highest_token: u64,
}

impl Row {
    fn load(file: &mut File) -> io::Result<Self> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut numbers = text.split(' ').map(|number| number.parse().map_err(io::Error::other));
        let mut next = || numbers.next().unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()));
        Ok(Row { left: next()?, highest_token: next()? })
    }

    fn save(self, file: &mut File) -> io::Result<()> {
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{} {}", self.left, self.highest_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn g3_an_order_with_an_older_token_is_refused_also_when_the_newer_one_only_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create(folder.path(), 10).expect("a store");

        assert_eq!(store.read_stock(Some(5)).await.expect("read"), 10);
        assert!(store.place_order(0, Some(5), 9).await.expect("write"));
        // 6 reads, is paused, and 7 gets the lock. What 6 has read is out of date from then on.
        assert_eq!(store.read_stock(Some(6)).await.expect("read"), 9);
        assert_eq!(store.read_stock(Some(7)).await.expect("read"), 9);
        assert!(!store.place_order(1, Some(6), 8).await.expect("refusal"));
        assert!(store.place_order(2, Some(7), 8).await.expect("write"));

        assert_eq!(store.read_stock(None).await.expect("read"), 8);
        let tokens: Vec<_> = store.orders().expect("orders").iter().map(|o| o.token).collect();
        assert_eq!(tokens, [Some(5), Some(7)]);
    }
}
