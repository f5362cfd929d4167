/**
 * Loaded into a daemon under test: at SIGUSR2 it collects garbage and writes what is still held, in bytes, to the pipe that
 * SALLYPORT_TEST_PIPE names. What a process has resident says more about its garbage than about its leaks.
 */

const { writeFileSync } = require('node:fs');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  // Buffers are let go of a turn after the objects that had them.
  setImmediate(() => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(process.env.SALLYPORT_TEST_PIPE, String(heapUsed + external));
  });
});
