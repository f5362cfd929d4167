/** A model of the AI SDK that works in a sandbox: its tools are the box, and nothing else. */

import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { Sandbox } from 'sallyport';
import { tools } from 'sallyport/ai';

const image = process.env['SALLYPORT_EXAMPLE_IMAGE'];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const call = (toolName: string, input: object) =>
  ({ type: 'tool-call', toolCallId: toolName, toolName, input: JSON.stringify(input) }) as const;
const answers = [
  call('write_file', { path: 'sum.py', content: 'print(sum(range(101)))\n' }),
  call('run', { command: 'python3 sum.py' }),
  { type: 'text', text: 'The sum is 5050.' } as const,
];

// So that this runs without a key: a model that knows what it will say. Put the model of your provider here.
const model = new MockLanguageModelV3({
  doGenerate: answers.map((answer) => ({
    content: [answer],
    finishReason: { unified: answer.type === 'text' ? 'stop' : 'tool-calls', raw: undefined },
    usage,
    warnings: [],
  })),
});

await using box = await Sandbox.create(image === undefined ? {} : { image });
const { text, steps } = await generateText({
  model,
  tools: tools(box, { only: ['run', 'write_file', 'read_file'] }),
  prompt: 'What is the sum of the numbers from 1 to 100? Write a program and run it.',
  stopWhen: stepCountIs(5),
});

for (const { toolName, output } of steps.flatMap(({ toolResults }) => toolResults)) {
  const { exit_code: code, stdout } = output as { exit_code?: number; stdout?: string };
  console.log(toolName, code ?? '-', stdout?.trim() ?? '-');
}
console.log(text);
