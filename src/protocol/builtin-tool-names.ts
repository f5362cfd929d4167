/** The built-in tools by name. What each of them brings is in `policy/builtin-tools.ts`. */

export const builtinToolNames = ['claude', 'codex', 'git', 'uv', 'npm', 'apt'] as const;

export type BuiltinToolName = (typeof builtinToolNames)[number];
