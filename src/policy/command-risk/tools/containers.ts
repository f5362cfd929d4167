/** Containers, clusters and clouds: what is lost there is lost, too. */

import type { Call, Judge } from '../call.ts';

interface Control {
  readonly shows: RegExp;
  readonly runs?: RegExp;
  readonly destroys: RegExp;
  readonly rest: 'sends_out' | 'system_write' | 'runs_code';
}

const engine: Control = {
  shows:
    /^(ps|images|logs|inspect|version|info|stats|top|port|history|diff|events|search|ls|list|config|df|context|help)$/,
  runs: /^(run|exec|build|buildx|compose|create|start|restart|attach|up|commit|import|load|swarm|service|stack|plugin)$/,
  destroys: /^(rm|rmi|prune|kill|stop|down|remove|destroy|unpause)$/,
  rest: 'system_write',
};

const cluster: Control = {
  shows:
    /^(get|describe|logs|top|explain|version|cluster-info|api-resources|api-versions|config|diff|auth|events|plan|validate|fmt|show|output|state|graph|providers|list|ls|status|help)$/,
  runs: /^(exec|run|attach|cp|debug|port-forward|proxy|console)$/,
  destroys: /^(delete|drain|destroy|taint|cordon|evict|terminate|purge|rm|remove)$/,
  rest: 'sends_out',
};

const controls: Readonly<Record<string, Control>> = {
  docker: engine,
  podman: engine,
  nerdctl: engine,
  'docker-compose': engine,
  'podman-compose': engine,
  lxc: engine,
  kubectl: cluster,
  oc: cluster,
  k9s: cluster,
  terraform: cluster,
  tofu: cluster,
  pulumi: cluster,
  vagrant: engine,
  aws: cluster,
  gcloud: cluster,
  az: cluster,
  doctl: cluster,
  fly: cluster,
  flyctl: cluster,
  heroku: cluster,
  vercel: cluster,
  netlify: cluster,
  wrangler: cluster,
  gh: cluster,
  glab: cluster,
  ansible: cluster,
  'ansible-playbook': cluster,
  vault: cluster,
  consul: cluster,
  nomad: cluster,
};

/** `docker system prune`, `aws s3 rm`, `az group delete`: what is done may be the second or the third word. */
function judgeControl(call: Call, control: Control): void {
  const words = call.operands.slice(0, 3).map(({ text }) => text);
  const name = `${call.program} ${words.slice(0, 2).join(' ')}`.trim();
  const destroys = words.some(
    (word) => control.destroys.test(word) || /^(delete|remove|destroy|terminate|rb)(-|$)/.test(word),
  );
  if (words.length === 0) return;
  if (words[0] === 'compose' && /^(ps|ls|version|images)$/.test(words[1] ?? '')) return;
  if (call.program === 'gh' && /^(list|view|status|diff|checks)$/.test(words[1] ?? '')) {
    call.report('plain_fetch', `${name} asks a server`);
    return;
  }
  if (destroys || call.has('--prune')) call.report('destroys', `${name} removes what may be needed`);
  else if (control.runs?.test(words[0] ?? '') === true) call.report('runs_code', `${name} runs a program`);
  else if (words.slice(0, 2).some((word) => control.shows.test(word) || /^(describe|list|get)-/.test(word))) {
    if (control === cluster) call.report('plain_fetch', `${name} asks a server`);
  } else call.report(control.rest, `${name} changes something`);
}

const judge =
  (control: Control): Judge =>
  (call) =>
    judgeControl(call, control);

export const containers: Readonly<Record<string, Judge>> = {
  ...Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, judge(control)])),
  runc: (call) => call.report('runs_code', 'runc runs a container'),
  ctr: judge(engine),
  crictl: judge(engine),
  minikube: judge(engine),
  kind: judge(engine),
  skopeo: (call) => call.report('sends_out', 'skopeo talks to a registry'),
  crane: (call) => call.report('sends_out', 'crane talks to a registry'),
};
