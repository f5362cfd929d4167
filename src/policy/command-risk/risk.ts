/** The classes of risk, the rules that put a command into one, and where each rule sends it. Data, so that it can be read. */

import {
  type CommandRoute,
  type RiskClass,
  riskClasses,
  commandRoutes as routes,
} from '../../protocol/risk-classes.ts';

interface Rule {
  readonly class: RiskClass;
  readonly route: CommandRoute;
  readonly confirm: boolean;
}

const rule = (riskClass: RiskClass, route: CommandRoute, confirm = false): Rule => ({
  class: riskClass,
  route,
  confirm,
});

export const rules = {
  local_write: rule('local_write', 'host'),
  plain_fetch: rule('network', 'host'),
  sends_out: rule('network', 'sandbox'),
  system_write: rule('system_write', 'sandbox'),
  installs: rule('install', 'sandbox'),
  runs_code: rule('code_execution', 'sandbox'),
  /** On the list of paths that nothing is to touch unasked. */
  restricted_path: rule('unknown', 'sandbox'),
  unknown_tool: rule('unknown', 'sandbox'),
  /** An option or an operand that is not on the program's allow-list. */
  not_allowed: rule('unknown', 'sandbox'),
  /** A syntax error, or a command whose name is only known when it runs. */
  not_understood: rule('unknown', 'sandbox'),
  /** Characters that make the text read otherwise than it runs. */
  hidden_text: rule('unknown', 'sandbox'),
  destroys: rule('destructive', 'sandbox', true),
  /** On the list of commands that never run on the host. */
  forbidden: rule('destructive', 'sandbox', true),
  /** On the user's own list. */
  blocked: rule('blocked', 'deny'),
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof rules;

/** Offsets into the command as it was given, in UTF-16 units; the end is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Reason {
  readonly rule: RuleName;
  readonly span: Span;
  /** A sentence for people. */
  readonly text: string;
}

export interface Evaluation {
  readonly route: CommandRoute;
  readonly class: RiskClass;
  readonly confirm: boolean;
  /** The worst first; empty for what is safe. */
  readonly reasons: readonly Reason[];
}

const severity = (name: RuleName): number =>
  routes.indexOf(rules[name].route) * riskClasses.length + riskClasses.indexOf(rules[name].class);

/** The worst stage wins. */
export function conclude(reasons: readonly Reason[]): Evaluation {
  const sorted = reasons.toSorted(
    (a, b) => severity(b.rule) - severity(a.rule) || a.span.start - b.span.start,
  );
  const all = sorted.map(({ rule: name }) => rules[name]);
  const worst = Math.max(0, ...all.map((each) => riskClasses.indexOf(each.class)));
  const farthest = Math.max(0, ...all.map((each) => routes.indexOf(each.route)));
  return {
    route: routes[farthest] ?? 'deny',
    class: riskClasses[worst] ?? 'unknown',
    confirm: all.some((each) => each.confirm) && routes[farthest] !== 'deny',
    reasons: sorted,
  };
}
