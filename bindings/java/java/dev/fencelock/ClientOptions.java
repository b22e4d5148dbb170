package dev.fencelock;

import java.time.Duration;
import java.util.Objects;

/**
 * Options of a client: an immutable value. Options in the URL ({@code fl.prefix=} and so on, of
 * which there are more) hold unless they are set here.
 */
public final class ClientOptions {
    private static final ClientOptions DEFAULTS =
            new ClientOptions(null, null, null, null, null, null);

    final Duration connectTimeout;
    final Duration requestTimeout;
    final String prefix;
    final String collection;
    final String root;
    final String nodeLayout;

    private ClientOptions(
            Duration connectTimeout,
            Duration requestTimeout,
            String prefix,
            String collection,
            String root,
            String nodeLayout) {
        this.connectTimeout = connectTimeout;
        this.requestTimeout = requestTimeout;
        this.prefix = prefix;
        this.collection = collection;
        this.root = root;
        this.nodeLayout = nodeLayout;
    }

    /**
     * The defaults.
     *
     * @return the defaults
     */
    public static ClientOptions defaults() {
        return DEFAULTS;
    }

    /**
     * The limit for making the first connection, and for an acquire that never gets an answer.
     *
     * @param limit 1 ms to 1 h; 5 s by default
     * @return these options with this limit
     */
    public ClientOptions connectTimeout(Duration limit) {
        Objects.requireNonNull(limit, "connectTimeout");
        return new ClientOptions(limit, requestTimeout, prefix, collection, root, nodeLayout);
    }

    /**
     * The limit for one request. A request for a lock waits a third of its ttl at most.
     *
     * @param limit 1 ms to 1 h; 2 s by default
     * @return these options with this limit
     */
    public ClientOptions requestTimeout(Duration limit) {
        Objects.requireNonNull(limit, "requestTimeout");
        return new ClientOptions(connectTimeout, limit, prefix, collection, root, nodeLayout);
    }

    /**
     * What stands before the name in the key (Redis).
     *
     * @param prefix without NUL, and without braces or with one cluster hash tag; empty is allowed,
     *     then the key is the name
     * @return these options with this prefix
     */
    public ClientOptions prefix(String prefix) {
        Objects.requireNonNull(prefix, "prefix");
        return new ClientOptions(
                connectTimeout, requestTimeout, prefix, collection, root, nodeLayout);
    }

    /**
     * Where the locks are kept (MongoDB).
     *
     * @param collection as {@code database.collection}
     * @return these options with this collection
     */
    public ClientOptions collection(String collection) {
        Objects.requireNonNull(collection, "collection");
        return new ClientOptions(
                connectTimeout, requestTimeout, prefix, collection, root, nodeLayout);
    }

    /**
     * The node below which the locks are (ZooKeeper), itself below the chroot of the URL.
     *
     * @param root an absolute path
     * @return these options with this root
     */
    public ClientOptions root(String root) {
        Objects.requireNonNull(root, "root");
        return new ClientOptions(
                connectTimeout, requestTimeout, prefix, collection, root, nodeLayout);
    }

    /**
     * How contenders name their nodes (ZooKeeper), which decides what other libraries the lock
     * excludes.
     *
     * @param layout {@code curator}, {@code kazoo} or {@code plain}
     * @return these options with this layout
     */
    public ClientOptions nodeLayout(String layout) {
        Objects.requireNonNull(layout, "nodeLayout");
        return new ClientOptions(connectTimeout, requestTimeout, prefix, collection, root, layout);
    }
}
