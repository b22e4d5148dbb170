package dev.fencelock;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Reads what native code writes, and writes what it reads. */
final class Reader {
    private final ByteBuffer bytes;

    Reader(byte[] bytes) {
        this.bytes = ByteBuffer.wrap(bytes);
    }

    String text() {
        int length = bytes.getInt();
        if (length < 0) {
            return null;
        }
        String text = new String(bytes.array(), bytes.position(), length, StandardCharsets.UTF_8);
        bytes.position(bytes.position() + length);
        return text;
    }

    private Long maybeNumber() {
        boolean given = bytes.get() != 0;
        long number = bytes.getLong();
        return given ? number : null;
    }

    private Duration maybeTime() {
        Long millis = maybeNumber();
        return millis == null ? null : Duration.ofMillis(millis);
    }

    LockInfo info() {
        String name = text();
        LockInfo.State state = LockInfo.State.of(text());
        String owner = text();
        Long token = maybeNumber();
        Duration held = maybeTime();
        Duration ttlLeft = maybeTime();
        String metadata = text();
        int length = (int) bytes.getLong();
        List<LockInfo.Waiter> queue = new ArrayList<>(length);
        for (int i = 0; i < length; i++) {
            queue.add(new LockInfo.Waiter(text(), Duration.ofMillis(bytes.getLong()), text()));
        }
        return new LockInfo(name, state, owner, token, held, ttlLeft, metadata, List.copyOf(queue));
    }

    /** UTF-8, or null for null. A Java string can hold half a surrogate pair; that is refused. */
    static byte[] utf8(String text, String what) {
        if (text == null) {
            return null;
        }
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException e) {
            throw new InvalidArgumentException(what + " cannot be written as UTF-8");
        }
    }

    /** Seconds and nanoseconds of each time; nanoseconds of -1 for null. */
    static long[] times(Duration... times) {
        long[] numbers = new long[times.length * 2];
        for (int i = 0; i < times.length; i++) {
            numbers[2 * i] = times[i] == null ? 0 : times[i].getSeconds();
            numbers[2 * i + 1] = nanos(times[i]);
        }
        return numbers;
    }

    static int nanos(Duration time) {
        return time == null ? -1 : time.getNano();
    }

    static long seconds(Duration time) {
        return time == null ? 0 : time.getSeconds();
    }
}
