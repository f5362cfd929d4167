/** Commands of cmd.exe and PowerShell. Agents write them on any machine, and a shell elsewhere runs them by these names. */

import type { Judge } from '../call.ts';

const destroys: Judge = (call) =>
  call.report('destroys', `${call.program} removes or stops what may be needed`);
const changes: Judge = (call) => call.report('system_write', `${call.program} changes the machine`);
const writes: Judge = (call) => call.report('local_write', `${call.program} writes`);
const shows: Judge = () => {};

const isSwitch = (text: string): boolean => /^\/[a-z?](:.*)?$/i.test(text);

/** Without a switch it is one file; with /s or /q it is everything, unasked. */
const del: Judge = (call) => {
  const targets = call.args.filter(({ text }) => !isSwitch(text));
  const wide =
    call.args.some(({ text }) => /^\/[sq]$/i.test(text)) || targets.some((arg) => call.scope(arg) !== 'here');
  if (wide) destroys(call);
  else writes(call);
};

const removeItem: Judge = (call) => {
  const targets = call.operands.filter(({ text }) => !isSwitch(text));
  const recursive = call.options.some(({ text }) => /^-(recurse|r|force|fo)/i.test(text));
  if (recursive && targets.every((arg) => call.scope(arg) === 'here') && targets.length > 0) writes(call);
  else destroys(call);
};

const powershell: Judge = (call) => {
  const at = call.args.findIndex(({ text }) => /^-(c|command)$/i.test(text));
  const script = at === -1 ? undefined : call.args.slice(at + 1);
  if (script?.every(({ known }) => known) === true && script.length > 0) {
    call.bench.script(script.map(({ text }) => text).join(' '), call.span);
  }
  call.report('runs_code', `${call.program} runs a script`);
};

const cmd: Judge = (call) => {
  const at = call.args.findIndex(({ text }) => /^\/[ck]$/i.test(text));
  if (at !== -1 && at + 1 < call.args.length) call.bench.command(call.args.slice(at + 1), call.span);
  else call.report('runs_code', 'cmd starts a shell');
};

const names = (text: string, judge: Judge): Record<string, Judge> =>
  Object.fromEntries(text.split(' ').map((name) => [name, judge]));

/** In lower case; whoever looks here has lowered the name. */
export const windows: Readonly<Record<string, Judge>> = {
  ...names('del erase', del),
  ...names('rd', del),
  ...names(
    'format diskpart taskkill stop-process stop-service stop-computer restart-computer clear-disk format-volume remove-partition initialize-disk clear-content clear-recyclebin remove-itemproperty remove-service remove-localuser vssadmin wbadmin bcdedit cipher',
    destroys,
  ),
  ...names('remove-item ri', removeItem),
  ...names(
    'set-executionpolicy set-itemproperty new-itemproperty reg regedit schtasks sc net netsh wmic icacls takeown attrib setx set-service new-service start-service new-localuser set-acl bitsadmin certutil set-mppreference',
    changes,
  ),
  ...names(
    'new-item set-content add-content out-file copy-item move-item rename-item copy xcopy robocopy move ren rename md',
    writes,
  ),
  ...names(
    'get-content get-childitem get-item get-process get-service get-location get-date get-help get-command get-member get-host test-path select-object where-object sort-object measure-object format-table format-list select-string write-host write-output resolve-path dir cls ver vol systeminfo tasklist ipconfig whoami-win findstr',
    shows,
  ),
  ...names('invoke-webrequest iwr invoke-restmethod irm test-netconnection resolve-dnsname', (call) => {
    if (call.options.some(({ text }) => /^-(method|body|infile|form)$/i.test(text)))
      call.report('sends_out', `${call.program} sends data`);
    else call.report('plain_fetch', `${call.program} fetches`);
  }),
  ...names(
    'invoke-expression iex invoke-command icm start-process saps start-job add-type invoke-item ii rundll32 regsvr32 mshta cscript wscript start',
    (call) => call.report('runs_code', `${call.program} runs a program`),
  ),
  ...names('powershell pwsh', powershell),
  ...names('install-module install-package install-script', (call) =>
    call.report('installs', `${call.program} installs`),
  ),
  cmd,
};
