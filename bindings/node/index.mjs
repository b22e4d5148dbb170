// The same module for `import`: there must be only one set of classes, whoever loads it how.
import fencelock from './lib/index.js'

export const {
  version,
  connect,
  connectSync,
  Client,
  Lock,
  Lease,
  FencelockError,
  LockTimeout,
  LockLost,
  Cancelled,
  Closed,
  Forked,
  InvalidArgument,
  Unsupported,
  Unavailable,
  AuthFailed,
  Conflict,
  Internal,
} = fencelock
export default fencelock
