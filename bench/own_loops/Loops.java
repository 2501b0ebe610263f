// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * A loop as people write it in Java. Its account has the form of cycle_log.h; System.nanoTime() is
 * CLOCK_MONOTONIC on Linux.
 *
 * <p>java-executor --log FILE --period-us N --work-us N
 */
public final class Loops {
	private static final int CYCLES_MAX = 400_000;
	private static final long CAUGHT_UP = 1;
	private static final long[] LOG = new long[CYCLES_MAX * 4];
	private static int count;
	private static long periodNs, workNs;
	private static volatile ScheduledFuture<?> future;

	private static void cycle() {
		long startNs = System.nanoTime();
		if (future == null) {
			return; // the executor's own release is not known yet
		}
		long dueNs = startNs + future.getDelay(TimeUnit.NANOSECONDS);
		while (System.nanoTime() < startNs + workNs) {
		}
		LOG[count] = dueNs;
		LOG[count + 1] = startNs;
		LOG[count + 2] = System.nanoTime();
		LOG[count + 3] = count > 0 && LOG[count - 2] >= dueNs ? CAUGHT_UP : 0;
		count += 4;
	}

	private static void write(Path path) {
		int end = count; // the loop goes on
		ByteBuffer bytes = ByteBuffer.allocate(end * 8).order(ByteOrder.LITTLE_ENDIAN);
		for (int i = 0; i < end; i++) {
			bytes.putLong(LOG[i]);
		}
		try {
			Files.write(path, bytes.array());
		} catch (IOException error) {
			System.err.println(error);
		}
	}

	/** Runs until SIGTERM. */
	public static void main(String[] words) throws InterruptedException {
		Path log = null;
		for (int i = 1; i + 1 < words.length; i += 2) {
			switch (words[i]) {
			case "--log" -> log = Path.of(words[i + 1]);
			case "--period-us" -> periodNs = Long.parseLong(words[i + 1]) * 1000;
			case "--work-us" -> workNs = Long.parseLong(words[i + 1]) * 1000;
			default -> {
			}
			}
		}
		final Path path = log;
		Runtime.getRuntime().addShutdownHook(new Thread(() -> write(path)));
		var executor = Executors.newSingleThreadScheduledExecutor(task -> new Thread(task, "java-executor"));
		future = executor.scheduleAtFixedRate(Loops::cycle, periodNs, periodNs, TimeUnit.NANOSECONDS);
		System.out.println("ready");
		Thread.sleep(Long.MAX_VALUE);
	}
}
