/** Reads the clocks that Java knows. */
public class Clocks {
    public static void main(String[] arguments) {
        long last = System.nanoTime();
        for (int round = 0; round < 1000; round++) {
            long now = System.nanoTime();
            if (now < last) throw new IllegalStateException("the monotonic clock went back");
            last = now;
        }
        System.out.printf("monotonic %d.%09d%n", last / 1000000000, last % 1000000000);
        java.time.Instant now = java.time.Instant.now();
        System.out.printf("realtime %d.%09d%n", now.getEpochSecond(), now.getNano());
        long millis = System.currentTimeMillis();
        System.out.printf("realtime %d.%03d%n", millis / 1000, millis % 1000);
    }
}
