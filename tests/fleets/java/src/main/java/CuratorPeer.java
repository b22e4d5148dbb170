import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/** Curator's InterProcessMutex. */
final class CuratorPeer implements Peer {
    private final InterProcessMutex mutex;

    private CuratorPeer(InterProcessMutex mutex) {
        this.mutex = mutex;
    }

    public static void main(String[] args) throws Exception {
        var retries = new RetryNTimes(3, 100);
        try (var client = CuratorFrameworkFactory.newClient(args[0], 10_000, 5_000, retries)) {
            client.start();
            client.blockUntilConnected();
            new CuratorPeer(new InterProcessMutex(client, args[1])).obey();
        }
    }

    @Override
    public boolean acquire(long milliseconds) throws Exception {
        if (milliseconds < 0) {
            mutex.acquire();
            return true;
        }
        return mutex.acquire(milliseconds, TimeUnit.MILLISECONDS);
    }

    @Override
    public void release() throws Exception {
        mutex.release();
    }
}
