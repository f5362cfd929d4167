/**
 * Loaded into a daemon before its own code: measures the longest stretch of its event loop, in processor time of the main thread between
 * two ticks of a timer. Processor time, because a busy machine makes every clock on the wall say that the loop was late.
 * SIGUSR2 writes the figures since the last time to a pipe: longest stretch and all of the thread's processor time, in milliseconds.
 */

const { readFileSync, writeFile } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

if (isMainThread) {
  const tickMs = 2;
  const place = `/proc/self/task/${process.pid}/schedstat`;
  const cpuMs = () => Number(readFileSync(place, 'latin1').split(' ')[0]) / 1e6;
  let from = cpuMs();
  let last = from;
  let longest = 0;
  const look = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  setInterval(look, tickMs).unref();
  process.on('SIGUSR2', () => {
    look();
    const figures = JSON.stringify({ longestMs: longest, cpuMs: last - from });
    longest = 0;
    from = last;
    writeFile(process.env.SALLYPORT_TEST_PIPE, figures, () => {});
  });
}
