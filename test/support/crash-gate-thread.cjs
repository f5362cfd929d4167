/** Loaded into every thread of a daemon under test: at SIGUSR2 the thread of the gate throws, as a fault of its code would. */

const { BroadcastChannel, isMainThread } = require('node:worker_threads');

const orders = new BroadcastChannel('crash the gate');
orders.unref();
if (isMainThread) process.on('SIGUSR2', () => orders.postMessage('now'));
else {
  orders.onmessage = () => {
    throw new Error('a test ended this thread');
  };
}
