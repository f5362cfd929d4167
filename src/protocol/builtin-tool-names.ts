/** The built-in tools by name, and how a spec names one. What each of them brings is in `policy/builtin-tools.ts`. */

export const builtinToolNames = ['claude', 'codex', 'git', 'uv', 'npm', 'apt'] as const;

export type BuiltinToolName = (typeof builtinToolNames)[number];

/**
 * `protected`: what the host executes from a tool's folders is read-only inside, or the sandbox's own. `shared`: the folders are
 * writable as they are, so that code inside decides what the host executes.
 */
export const builtinToolModes = ['protected', 'shared'] as const;

export type BuiltinToolMode = (typeof builtinToolModes)[number];

/** A tool of a parsed spec. A name alone is `protected`, and `protected` is always a name alone: one wish has one form. */
export type WantedTool = BuiltinToolName | { readonly name: BuiltinToolName; readonly mode: 'shared' };

export const toolName = (tool: WantedTool): BuiltinToolName => (typeof tool === 'string' ? tool : tool.name);

export const toolMode = (tool: WantedTool): BuiltinToolMode =>
  typeof tool === 'string' ? 'protected' : tool.mode;
