//! A client.

use std::sync::Arc;

use fencelock::{ClientOptions, LockOptions};
use fencelock_shared::{OpenClient, duration, panic};
use pyo3::prelude::*;

use crate::call::{Call, Value};
use crate::convert;
use crate::errors::Failure;
use crate::lock::Lock;

#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Client(Arc<OpenClient>);

impl Client {
    pub(crate) fn new(client: Arc<OpenClient>) -> Self {
        Client(client)
    }
}

#[pymethods]
impl Client {
    #[staticmethod]
    fn connect(
        url: &Bound<'_, PyAny>,
        connect_timeout: &Bound<'_, PyAny>,
        request_timeout: &Bound<'_, PyAny>,
        prefix: &Bound<'_, PyAny>,
        collection: &Bound<'_, PyAny>,
        root: &Bound<'_, PyAny>,
        node_layout: &Bound<'_, PyAny>,
    ) -> Result<Call, Failure> {
        let url = convert::maybe_text(url, "url")?;
        let mut options = ClientOptions::new().language("python");
        let allowed = duration::CLIENT_TIMEOUT;
        if let Some(time) = convert::maybe_seconds(connect_timeout, "connect_timeout", allowed)? {
            options = options.connect_timeout(time);
        }
        if let Some(time) = convert::maybe_seconds(request_timeout, "request_timeout", allowed)? {
            options = options.request_timeout(time);
        }
        if let Some(prefix) = convert::maybe_text(prefix, "prefix")? {
            options = options.prefix(prefix);
        }
        if let Some(collection) = convert::maybe_text(collection, "collection")? {
            options = options.collection(collection);
        }
        if let Some(root) = convert::maybe_text(root, "root")? {
            options = options.root(root);
        }
        if let Some(layout) = convert::maybe_text(node_layout, "node_layout")? {
            options = options.node_layout(layout.parse()?);
        }
        Ok(Call::new(async move { OpenClient::connect(url, options).await.map(Value::Client) }))
    }

    fn lock(
        &self,
        name: &Bound<'_, PyAny>,
        ttl: &Bound<'_, PyAny>,
        timeout: &Bound<'_, PyAny>,
        renew: &Bound<'_, PyAny>,
        max_hold: &Bound<'_, PyAny>,
        metadata: &Bound<'_, PyAny>,
    ) -> Result<Lock, Failure> {
        self.0.check_process()?;
        let name = convert::text(name, "name")?;
        let mut options = LockOptions::new()
            .ttl(convert::seconds(ttl, "ttl", duration::TTL)?)
            .renew(convert::flag(renew, "renew")?)
            .max_hold(convert::maybe_seconds(max_hold, "max_hold", convert::MAX_HOLD)?);
        if let Some(text) = convert::maybe_text(metadata, "metadata")? {
            options = options.metadata(text);
        }
        convert::wait(timeout)?;
        let lock = panic::catch(|| self.0.lock_with(&name, options))?;
        Ok(Lock::new(self.0.clone(), lock))
    }

    fn inspect(&self, name: &Bound<'_, PyAny>) -> Result<Call, Failure> {
        self.0.check_process()?;
        let name = convert::text(name, "name")?;
        let client = self.0.clone();
        Ok(Call::new(async move { client.inspect(&name).await.map(Value::Info) }))
    }

    fn list(&self) -> Result<Call, Failure> {
        self.0.check_process()?;
        let client = self.0.clone();
        Ok(Call::new(async move { client.list().await.map(Value::Infos) }))
    }

    fn force_release(&self, name: &Bound<'_, PyAny>) -> Result<Call, Failure> {
        self.0.check_process()?;
        let name = convert::text(name, "name")?;
        let client = self.0.clone();
        Ok(Call::new(async move { client.force_release(&name).await.map(Value::Flag) }))
    }

    fn close(&self) -> Result<Call, Failure> {
        self.0.check_process()?;
        let client = self.0.clone();
        Ok(Call::new(async move {
            client.close().await;
            Ok(Value::Nothing)
        }))
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }
}
