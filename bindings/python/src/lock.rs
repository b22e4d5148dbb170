//! A lock.

use std::sync::Arc;

use fencelock_shared::OpenClient;
use pyo3::prelude::*;

use crate::call::{Call, Value};
use crate::convert;
use crate::errors::Failure;

#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Lock {
    client: Arc<OpenClient>,
    lock: fencelock::Lock,
}

impl Lock {
    pub(crate) fn new(client: Arc<OpenClient>, lock: fencelock::Lock) -> Self {
        Lock { client, lock }
    }
}

#[pymethods]
impl Lock {
    #[getter]
    fn name(&self) -> &str {
        self.lock.name()
    }

    fn acquire(&self, timeout: &Bound<'_, PyAny>) -> Result<Call, Failure> {
        self.client.check_process()?;
        let timeout = convert::wait(timeout)?;
        let (client, lock) = (self.client.clone(), self.lock.clone());
        Ok(Call::interruptible(|interrupted| async move {
            let lease = lock.acquire_unless(timeout, interrupted).await?;
            Ok(Value::Lease(client, lease))
        }))
    }

    fn try_acquire(&self) -> Result<Call, Failure> {
        self.client.check_process()?;
        let (client, lock) = (self.client.clone(), self.lock.clone());
        Ok(Call::new(async move {
            Ok(match lock.try_acquire().await? {
                Some(lease) => Value::Lease(client, lease),
                None => Value::Nothing,
            })
        }))
    }
}
