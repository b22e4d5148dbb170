//! A client.

use std::sync::Arc;

use fencelock::{ClientOptions, LockOptions, Result};
use fencelock_shared::OpenClient;
use fencelock_shared::duration::{CLIENT_TIMEOUT, TTL};
use fencelock_shared::handles::{self, Handled};
use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray};
use jni::sys::jlong;

use crate::at_once;
use crate::bytes;
use crate::call::{Value, begin, unless};
use crate::lock::Lock;

/// What a client's handle stands for.
pub(crate) struct Client(pub(crate) Arc<OpenClient>);

impl Handled for Client {
    const WHAT: &'static str = "client";
}

fn client(handle: jlong) -> Result<Arc<OpenClient>> {
    Ok(handles::get::<Client>(handle as u64)?.0.clone())
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_connect<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    url: JByteArray<'l>,
    times: JLongArray<'l>,
    texts: JObjectArray<'l, JByteArray<'l>>,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |env, cancelled| {
        let url = bytes::maybe_text(env, &url)?;
        let mut options = ClientOptions::new().language("java");
        let names = [("connect_timeout", CLIENT_TIMEOUT), ("request_timeout", CLIENT_TIMEOUT)];
        let [connect, request] = bytes::times(env, &times, names)?;
        if let Some(limit) = connect {
            options = options.connect_timeout(limit);
        }
        if let Some(limit) = request {
            options = options.request_timeout(limit);
        }
        if let Some(prefix) = bytes::text_of(env, &texts, 0)? {
            options = options.prefix(prefix);
        }
        if let Some(collection) = bytes::text_of(env, &texts, 1)? {
            options = options.collection(collection);
        }
        if let Some(root) = bytes::text_of(env, &texts, 2)? {
            options = options.root(root);
        }
        if let Some(layout) = bytes::text_of(env, &texts, 3)? {
            options = options.node_layout(layout.parse()?);
        }
        let connecting = OpenClient::connect(url, options);
        Ok(async move { unless(cancelled, connecting).await.map(Value::Client) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_lock<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    name: JByteArray<'l>,
    times: JLongArray<'l>,
    renew: bool,
    metadata: JByteArray<'l>,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    at_once(&mut env, &out, |env| {
        let client = client(handle)?;
        let name = bytes::text(env, &name, "name")?;
        let names = [("ttl", TTL), ("max_hold", "a time longer than ttl, or none")];
        let [ttl, max_hold] = bytes::times(env, &times, names)?;
        let mut options = LockOptions::new().renew(renew).max_hold(max_hold);
        if let Some(ttl) = ttl {
            options = options.ttl(ttl);
        }
        if let Some(text) = bytes::maybe_text(env, &metadata)? {
            options = options.metadata(text);
        }
        let lock = client.lock_with(&name, options)?;
        let handle = handles::add(Arc::new(Lock { lock, client }))?;
        Ok(Value::Number(handle as jlong))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_inspect<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    name: JByteArray<'l>,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |env, cancelled| {
        let client = client(handle)?;
        let name = bytes::text(env, &name, "name")?;
        Ok(async move {
            let info = unless(cancelled, client.inspect(&name)).await?;
            Ok(Value::Infos(vec![info]))
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_list<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        let client = client(handle)?;
        Ok(async move { unless(cancelled, client.list()).await.map(Value::Infos) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_forceRelease<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    name: JByteArray<'l>,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |env, cancelled| {
        let client = client(handle)?;
        let name = bytes::text(env, &name, "name")?;
        Ok(async move {
            let ended = unless(cancelled, client.force_release(&name)).await?;
            Ok(Value::Number(ended.into()))
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_close<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, _| {
        let client = client(handle)?;
        Ok(async move {
            client.close().await;
            Ok(Value::Nothing)
        })
    })
}

/// Java refers to the client no more. Its leases keep it alive.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_freeClient(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) {
    crate::lease::free::<Client>(handle);
}
