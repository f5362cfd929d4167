/** Programs that talk to other machines. To fetch what anybody may see is one thing, to send is another. */

import type { Call, Judge } from '../call.ts';

const sends =
  (why: string): Judge =>
  (call) =>
    call.report('sends_out', `${call.program} ${why}`);

/** One dash, one letter: where it stands among others its value follows. */
const curlSends =
  /^(-d|-F|-T|--data.*|--json|--form.*|--upload-file|--mail-.*|--quote|-Q|--telnet-option|--post\d*)$/;

function curl(call: Call): void {
  const sending = call.args.find(
    ({ text }) => curlSends.test(text.split('=')[0] ?? '') || /^-[dFT]./.test(text),
  );
  const method = call.valueOf('-X', '--request');
  if (sending !== undefined) call.report('sends_out', 'curl sends data', sending.span);
  else if (method !== undefined && !/^(GET|HEAD|OPTIONS)$/i.test(method.text)) {
    call.report('sends_out', `curl with ${method.text} changes something there`, method.span);
  }
  if (call.has('-K', '--config')) call.report('not_understood', 'curl takes its options from a file');
  judgeAddresses(call);
  const target = call.valueOf('-o', '--output', '--output-dir', '--create-file-mode');
  if (target !== undefined) call.writes([target]);
  else if (call.has('-O', '--remote-name', '--remote-name-all', '-J'))
    call.report('local_write', 'curl writes a file');
  for (const file of [
    call.valueOf('-c', '--cookie-jar'),
    call.valueOf('-D', '--dump-header'),
    call.valueOf('--trace'),
  ]) {
    if (file !== undefined) call.writes([file]);
  }
}

function wget(call: Call): void {
  if (call.options.some(({ text }) => /^--(post-|body-|method)/.test(text)))
    call.report('sends_out', 'wget sends data');
  if (call.has('--use-askpass') || call.hasWord('-e', '--execute', '--config'))
    call.report('runs_code', 'wget takes commands of its own');
  judgeAddresses(call);
  const target = call.valueOf('-O', '--output-document', '-P', '--directory-prefix');
  if (target === undefined) call.report('local_write', 'wget writes a file');
  else if (target.text !== '-') call.writes([target]);
}

/** An address that is put together when it runs can carry anything out. */
function judgeAddresses(call: Call): void {
  const hidden = call.args.find(({ known, reveals }) => !known || reveals === true);
  if (hidden !== undefined)
    call.report(
      'sends_out',
      `${call.program} with words that show only when it runs may carry anything out`,
      hidden.span,
    );
  else call.report('plain_fetch', `${call.program} fetches`);
}

const looksUp: Judge = (call) => judgeAddresses(call);

const ssh: Judge = (call) => {
  const runs =
    call.options.some(({ text }) => /^-o/.test(text)) &&
    call.args.some(({ text }) => /proxycommand|localcommand|knownhostscommand/i.test(text));
  if (runs) call.report('runs_code', 'ssh runs a program to connect');
  call.report('sends_out', 'ssh runs what it is told on another machine');
};

const ip: Judge = (call) => {
  const shows = call.operands.every(
    ({ text }, at) => at === 0 || /^(show|list|ls|get|dev|up|lo|eth\d+|[a-z0-9]+)$/.test(text),
  );
  if (!shows || call.operands.some(({ text }) => /^(add|del|delete|set|flush|change|replace)$/.test(text))) {
    call.report('system_write', 'ip changes the network');
  }
};

export const network: Readonly<Record<string, Judge>> = {
  curl,
  wget,
  http: sends('sends a request'),
  https: sends('sends a request'),
  xh: sends('sends a request'),
  aria2c: (call) => {
    judgeAddresses(call);
    call.report('local_write', 'aria2c writes a file');
  },
  ...Object.fromEntries(
    'ping ping6 dig nslookup host whois traceroute tracepath mtr getent-net arping'
      .split(' ')
      .map((tool) => [tool, looksUp]),
  ),
  ssh,
  autossh: ssh,
  scp: (call) => {
    call.report('sends_out', 'scp copies between machines');
    call.writes(call.operands.slice(-1).filter(({ text }) => !/^[^/]*:/.test(text)));
  },
  ...Object.fromEntries(
    'sftp ftp lftp tftp nc ncat netcat socat telnet openssl-s_client nmap masscan tcpdump mail mailx sendmail msmtp swaks smbclient rclone s3cmd mosh websocat grpcurl'
      .split(' ')
      .map((tool) => [tool, sends('talks to other machines')]),
  ),
  'ssh-keygen': (call) => call.report('local_write', 'ssh-keygen writes keys'),
  'ssh-copy-id': sends('sends a key away'),
  'ssh-add': (call) => {
    if (!call.has('-l', '-L')) call.report('system_write', 'ssh-add changes the agent');
  },
  ip,
  ifconfig: (call) => {
    if (call.operands.length > 1) call.report('system_write', 'ifconfig changes the network');
  },
  ss: () => {},
  netstat: () => {},
  openssl: (call) => {
    if (/^s_(client|server)$/.test(call.first)) call.report('sends_out', 'openssl talks to another machine');
    else if (call.has('-out') || call.hasWord('-out', '-keyout'))
      call.report('local_write', 'openssl writes a file');
  },
  gpg: (call) => {
    if (call.options.some(({ text }) => /^--(send-keys|recv-keys|refresh-keys|keyserver)/.test(text)))
      call.report('sends_out', 'gpg talks to a key server');
    else if (call.options.some(({ text }) => /^--delete/.test(text)))
      call.report('destroys', 'gpg deletes keys');
    else if (!call.has('--list-keys', '--verify', '-k', '--fingerprint', '--list-secret-keys', '-K'))
      call.report('local_write', 'gpg writes');
  },
};
