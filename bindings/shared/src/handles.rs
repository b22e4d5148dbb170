//! Integers in place of references, for languages that cannot hold an `Arc`: C and JNI.
//!
//! A handle names a slot of a table and the use that is made of it, so one that was freed, made up
//! or is of another type finds nothing: closing during a call, double free and use after free are
//! errors and never crashes. A call clones the `Arc` out of the table and works on that.
//!
//! The table belongs to one process, as the runtime does: a forked child cannot know whether one
//! of the parent's threads was just changing it. So it never looks, and each handle of the parent
//! is `Forked` there (G9).

use std::any::Any;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fencelock::{Error, ErrorKind, Result};

/// What a handle may stand for.
pub trait Handled: Any + Send + Sync {
    /// What an error calls it, such as `"lease"`.
    const WHAT: &'static str;
}

/// The bits of a handle, from the lowest: shard, slot, use, process. A use is never 0, and
/// therefore no handle is.
const SHARD_BITS: u32 = 4;
const SLOT_BITS: u32 = 24;
const USE_BITS: u32 = 24;

/// Each has a mutex of its own, and threads take turns in choosing one for what they add: threads
/// that do not share a handle hardly ever share a mutex.
const SHARDS: usize = 1 << SHARD_BITS;

/// A slot that was used as often as this is given up: a handle must never come back.
const LAST_USE: u32 = (1 << USE_BITS) - 1;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// Puts a value into the table. Its handle is never 0, and no other has or had it.
///
/// # Errors
///
/// `Internal` when 16 million handles are open.
pub fn add<T: Handled>(value: Arc<T>) -> Result<u64> {
    let table = Table::current();
    let number = shard_of_this_thread();
    let found = table.shards[number].lock().unwrap_or_else(PoisonError::into_inner).add(value);
    let (slot, used) = found.ok_or_else(|| {
        Error::new(ErrorKind::Internal, "too many open handles; free those that are not used")
    })?;
    Ok(Parts { process: table.process, used, slot, shard: number }.handle())
}

/// The value of a handle, which stays usable even if the handle is freed meanwhile.
///
/// # Errors
///
/// `InvalidArgument` when it is 0, was freed, or stands for something else; `Forked` in a child of
/// the process that made it.
pub fn get<T: Handled>(handle: u64) -> Result<Arc<T>> {
    find::<T, _>(handle, |shard, slot, used| shard.get(slot, used).cloned())
}

/// Takes the value out of the table: the handle is of no use from here on.
///
/// # Errors
///
/// Those of [`get`]; then nothing was taken.
pub fn take<T: Handled>(handle: u64) -> Result<Arc<T>> {
    find::<T, _>(handle, |shard, slot, used| match shard.get(slot, used) {
        // A handle of another type stays where it is.
        Some(value) if !(**value).is::<T>() => Some(value.clone()),
        Some(_) => shard.take(slot),
        None => None,
    })
}

/// How many handles are open in this process: for tests of leaks.
pub fn open() -> usize {
    let shards = Table::current().shards.iter();
    shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).open).sum()
}

type Value = Arc<dyn Any + Send + Sync>;

fn find<T, F>(handle: u64, look: F) -> Result<Arc<T>>
where
    T: Handled,
    F: FnOnce(&mut Shard, usize, u32) -> Option<Value>,
{
    let what = T::WHAT;
    if handle == 0 {
        return Err(Error::new(ErrorKind::InvalidArgument, format!("no {what} was given")));
    }
    let parts = Parts::of(handle);
    let table = Table::current();
    if parts.process != table.process {
        return Err(Error::new(
            ErrorKind::Forked,
            format!(
                "this {what} belongs to the parent of this forked process; connect a new client here"
            ),
        ));
    }
    let shard = &table.shards[parts.shard];
    let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
    let value = look(&mut shard, parts.slot, parts.used);
    drop(shard);
    // Outside of the lock: what is dropped or formatted here may be anything.
    value.and_then(|value| value.downcast::<T>().ok()).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("this is no {what}: it was freed, or is a handle of another type"),
        )
    })
}

struct Parts {
    process: u32,
    used: u32,
    slot: usize,
    shard: usize,
}

impl Parts {
    fn handle(&self) -> u64 {
        let above = u64::from(self.process) << USE_BITS | u64::from(self.used);
        (above << SLOT_BITS | self.slot as u64) << SHARD_BITS | self.shard as u64
    }

    fn of(handle: u64) -> Self {
        let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let above_shard = handle >> SHARD_BITS;
        let above_slot = above_shard >> SLOT_BITS;
        Parts {
            process: (above_slot >> USE_BITS) as u32,
            used: low(above_slot, USE_BITS) as u32,
            slot: low(above_shard, SLOT_BITS) as usize,
            shard: low(handle, SHARD_BITS) as usize,
        }
    }
}

/// The handles of one process.
struct Table {
    pid: u32,
    /// How many tables there were in the processes that this one was forked from: a child's
    /// handles differ from all that it can have inherited. It has as many bits as are left.
    process: u32,
    shards: [Mutex<Shard>; SHARDS],
}

impl Table {
    fn current() -> &'static Table {
        let pid = std::process::id();
        loop {
            let seen = TABLE.load(Ordering::Acquire);
            // SAFETY: what is in `TABLE` came from a box that is never freed, in this process or in
            // one that it was forked from. Of the latter only the two numbers are read.
            let table = unsafe { seen.as_ref() };
            let process = match table {
                Some(table) if table.pid == pid => return table,
                Some(table) => table.process.wrapping_add(1) & Self::PROCESSES,
                None => 0,
            };
            let shards = std::array::from_fn(|_| Mutex::default());
            let new = Box::into_raw(Box::new(Table { pid, process, shards }));
            let put = TABLE.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire);
            if put.is_err() {
                // SAFETY: another thread of this process was faster; nobody else has seen `new`.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    const PROCESSES: u32 = (1 << (u64::BITS - USE_BITS - SLOT_BITS - SHARD_BITS)) - 1;
}

#[derive(Default)]
struct Shard {
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
}

struct Slot {
    used: u32,
    value: Option<Value>,
}

impl Shard {
    fn add(&mut self, value: Value) -> Option<(usize, u32)> {
        let number = match self.free.pop() {
            Some(number) => number as usize,
            None if self.slots.len() < 1 << SLOT_BITS => {
                self.slots.push(Slot { used: 0, value: None });
                self.slots.len() - 1
            }
            None => return None,
        };
        let slot = &mut self.slots[number];
        slot.used += 1;
        slot.value = Some(value);
        self.open += 1;
        Some((number, slot.used))
    }

    fn get(&self, slot: usize, used: u32) -> Option<&Value> {
        self.slots.get(slot).filter(|slot| slot.used == used)?.value.as_ref()
    }

    fn take(&mut self, number: usize) -> Option<Value> {
        let slot = &mut self.slots[number];
        let value = slot.value.take()?;
        self.open -= 1;
        if slot.used < LAST_USE {
            self.free.push(number as u32);
        }
        Some(value)
    }
}

fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OURS: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    // A thread that is ending has no thread-locals any more.
    OURS.try_with(|ours| *ours).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    struct Cup(u32);
    impl Handled for Cup {
        const WHAT: &'static str = "cup";
    }

    struct Plate;
    impl Handled for Plate {
        const WHAT: &'static str = "plate";
    }

    fn refused<T>(result: Result<T>) -> String {
        let error = result.err().expect("an error");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    }

    #[test]
    fn a_handle_finds_its_value_until_it_is_taken() {
        let handle = add(Arc::new(Cup(7))).unwrap();
        let during_a_call = get::<Cup>(handle).unwrap();
        assert_eq!(take::<Cup>(handle).unwrap().0, 7);
        assert_eq!(during_a_call.0, 7);
        assert!(refused(get::<Cup>(handle)).contains("no cup: it was freed"));
        refused(take::<Cup>(handle));
        let next = add(Arc::new(Cup(8))).unwrap();
        assert_ne!(next, handle);
        refused(get::<Cup>(handle));
        assert_eq!(get::<Cup>(next).unwrap().0, 8);
        take::<Cup>(next).unwrap();
    }

    #[test]
    fn a_handle_of_another_type_is_refused_and_stays() {
        let handle = add(Arc::new(Cup(1))).unwrap();
        assert!(refused(get::<Plate>(handle)).contains("another type"));
        refused(take::<Plate>(handle));
        assert_eq!(get::<Cup>(handle).unwrap().0, 1);
        take::<Cup>(handle).unwrap();
    }

    #[test]
    fn what_was_never_a_handle_is_refused() {
        assert_eq!(refused(get::<Cup>(0)), "no cup was given");
        let ours = Table::current().process;
        for made_up in [1, u64::from(u32::MAX), u64::MAX] {
            let parts = Parts { process: ours, ..Parts::of(made_up) };
            refused(get::<Cup>(parts.handle()));
        }
    }

    #[test]
    fn handles_hold_all_their_parts() {
        for handle in [1, 0x1234_5678_9abc_def0, u64::MAX] {
            assert_eq!(Parts::of(handle).handle(), handle);
        }
    }

    #[test]
    fn a_worn_out_slot_is_given_up() {
        let mut shard = Shard::default();
        let (slot, _) = shard.add(Arc::new(Plate)).unwrap();
        shard.slots[slot].used = LAST_USE;
        assert!(shard.take(slot).is_some());
        let (next, used) = shard.add(Arc::new(Plate)).unwrap();
        assert_ne!(next, slot);
        assert_eq!(used, 1);
    }

    #[test]
    fn threads_get_handles_of_their_own_and_one_of_many_takes() {
        let threads: Vec<_> = (0..20)
            .map(|_| {
                std::thread::spawn(|| {
                    (0..500).map(|n| add(Arc::new(Cup(n))).unwrap()).collect::<Vec<_>>()
                })
            })
            .collect();
        let handles: Vec<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        assert_eq!(handles.iter().collect::<HashSet<_>>().len(), 20 * 500);
        let handles = Arc::new(handles);
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let handles = handles.clone();
                std::thread::spawn(move || {
                    handles.iter().filter(|handle| take::<Cup>(**handle).is_ok()).count()
                })
            })
            .collect();
        let taken: usize = takers.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(taken, 20 * 500);
    }
}
