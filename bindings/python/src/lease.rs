//! A lease. Dropping the last reference releases it: what Python's cancellation leaves behind is a
//! value that nobody wanted, and that is how it goes back.

use std::sync::Arc;

use fencelock::Ended;
use fencelock_shared::{OpenClient, Runtime, panic};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::call::{Call, Value, told};
use crate::convert;
use crate::errors::Failure;

#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Lease {
    lease: Arc<fencelock::Lease>,
    client: Arc<OpenClient>,
}

impl Lease {
    pub(crate) fn new(client: Arc<OpenClient>, lease: fencelock::Lease) -> Self {
        Lease { lease: Arc::new(lease), client }
    }
}

#[pymethods]
impl Lease {
    #[getter]
    fn name(&self) -> &str {
        self.lease.name()
    }

    #[getter]
    fn owner(&self) -> String {
        self.lease.owner()
    }

    #[getter]
    fn token(&self) -> u64 {
        self.lease.token().get()
    }

    #[getter]
    fn held(&self) -> bool {
        self.lease.is_held()
    }

    #[getter]
    fn remaining(&self) -> f64 {
        self.lease.remaining().as_secs_f64()
    }

    #[getter]
    fn watch(&self) -> Watch {
        Watch { watch: self.lease.watch(), client: self.client.clone() }
    }

    fn check(&self, py: Python<'_>) -> Result<(), Failure> {
        match panic::catch(|| self.lease.check()) {
            Ok(()) => Ok(()),
            Err(error) => Err(told(py, error)?.into()),
        }
    }

    fn renew(&self) -> Result<Call, Failure> {
        self.client.check_process()?;
        let lease = self.lease.clone();
        Ok(Call::new(async move { lease.renew().await.map(|()| Value::Nothing) }))
    }

    fn release(&self) -> Result<Call, Failure> {
        self.client.check_process()?;
        let lease = self.lease.clone();
        Ok(Call::new(async move { lease.release().await.map(|()| Value::Nothing) }))
    }

    /// Releases without waiting. Touches nothing in a forked child.
    fn abandon(&self) {
        if self.client.check_process().is_ok()
            && let Ok(runtime) = Runtime::current()
        {
            let lease = self.lease.clone();
            drop(runtime.spawn(async move { drop(lease.release().await) }));
        }
    }
}

/// What only watches a lease. It does not keep it: a thread that waits for the loss of a lease that
/// nobody else refers to any more would hold the lock for ever.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Watch {
    watch: fencelock::Watch,
    client: Arc<OpenClient>,
}

#[pymethods]
impl Watch {
    fn is_lost(&self) -> Result<bool, Failure> {
        self.client.check_process()?;
        Ok(self.watch.is_lost())
    }

    /// Waits for the end of the lease; true if it was lost, false if it was released or the time
    /// is over.
    fn wait_lost(&self, within: &Bound<'_, PyAny>) -> Result<Call, Failure> {
        self.client.check_process()?;
        let within = convert::wait(within)?;
        let watch = self.watch.clone();
        Ok(Call::new(async move {
            let ended = match within {
                Some(within) => timeout(within, watch.ended()).await.ok(),
                None => Some(watch.ended().await),
            };
            Ok(Value::Flag(ended == Some(Ended::Lost)))
        }))
    }
}
