/** The reader's own methods, in Java. */
class Around {
    static void takeOneUnit(long token) {
        if (token <= 0) throw new AssertionError("no token");
    }
}
