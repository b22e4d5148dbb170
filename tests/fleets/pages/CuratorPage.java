/** Before and after of LEAVING-CURATOR-AND-KAZOO.md beside each other. */
final class CuratorPage {
    private CuratorPage() {}

    public static void main(String[] arguments) throws InterruptedException {
        Runnable after = () -> curator.after.ProductLock.locked(Counting::increment);
        System.out.println("lost: " + Counting.lost(CuratorPage::before, after));
        System.exit(0); // Curator's client is not closed
    }

    private static void before() {
        try {
            curator.before.ProductLock.locked(Counting::increment);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
