/**
 * For `--require`: when the program first writes to stderr or stdout, an error is thrown, or a promise rejected, that nobody handles.
 * THROWN has its message.
 */

const { THROWN = '', THROWN_BY = 'timer' } = process.env;

for (const stream of [process.stdout, process.stderr]) {
  const write = stream.write;
  stream.write = (...args) => {
    stream.write = write;
    if (THROWN_BY === 'promise') setImmediate(() => void Promise.reject(new Error(THROWN)));
    else
      setImmediate(() => {
        throw new Error(THROWN);
      });
    return write.apply(stream, args);
  };
}
