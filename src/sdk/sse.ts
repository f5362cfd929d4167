/** Server-sent events, out of any chopping of the stream. */

import type { IncomingMessage } from 'node:http';

export interface SseEvent {
  readonly id?: string;
  readonly data: string;
}

/** More than any event of ours has. */
const mostPendingCharacters = 4 * 2 ** 20;

export async function* readSse(answer: IncomingMessage): AsyncGenerator<SseEvent> {
  answer.setEncoding('utf8');
  let pending = '';
  let id: string | undefined;
  let data: string[] = [];
  for await (const text of answer as AsyncIterable<string>) {
    pending += text;
    if (pending.length > mostPendingCharacters) throw new RangeError('an event that never ends');
    const lines = pending.split('\n');
    pending = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { data: data.join('\n'), ...(id === undefined ? {} : { id }) };
        data = [];
        id = undefined;
        continue;
      }
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (field === 'data') data.push(value);
      if (field === 'id') id = value;
    }
  }
}
