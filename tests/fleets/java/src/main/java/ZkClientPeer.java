import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.I0Itec.zkclient.IZkDataListener;
import org.I0Itec.zkclient.ZkClient;

/** The lock that many wrote by hand on ZkClient, as found in the wild, with a wait that ends. */
final class ZkClientPeer implements Peer {
    private final ZkClient client;
    private final String path;
    private String node;

    private ZkClientPeer(ZkClient client, String path) {
        this.client = client;
        this.path = path;
        if (!client.exists(path)) {
            client.createPersistent(path, true);
        }
    }

    public static void main(String[] args) throws Exception {
        var client = new ZkClient(args[0], 10_000, 5_000);
        try {
            new ZkClientPeer(client, args[1]).obey();
        } finally {
            client.close();
        }
    }

    @Override
    public boolean acquire(long milliseconds) throws InterruptedException {
        var end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        node = client.createEphemeralSequential(path + "/", "lock");
        while (true) {
            var names = client.getChildren(path);
            Collections.sort(names);
            var place = names.indexOf(node.substring(path.length() + 1));
            if (place == 0) {
                return true;
            }
            var left = milliseconds < 0 ? Long.MAX_VALUE : end - System.nanoTime();
            if (!isGone(path + "/" + names.get(place - 1), left)) {
                release();
                return false;
            }
        }
    }

    @Override
    public void release() {
        client.delete(node);
    }

    private boolean isGone(String before, long nanoseconds) throws InterruptedException {
        var gone = new CountDownLatch(1);
        var listener = new IZkDataListener() {
            @Override
            public void handleDataChange(String path, Object data) {}

            @Override
            public void handleDataDeleted(String path) {
                gone.countDown();
            }
        };
        client.subscribeDataChanges(before, listener);
        try {
            return !client.exists(before) || gone.await(nanoseconds, TimeUnit.NANOSECONDS);
        } finally {
            client.unsubscribeDataChanges(before, listener);
        }
    }
}
