/** What a peer sent is not HTTP as the gate accepts it. The code is stable; the message never repeats what was sent. */

export type ViolationCode =
  | 'bad_request'
  | 'bad_response'
  | 'head_too_large'
  | 'head_too_slow'
  | 'host_missing'
  | 'host_repeated'
  | 'host_mismatch'
  | 'host_invalid'
  | 'framing_ambiguous'
  | 'target_refused'
  | 'upgrade_refused'
  | 'connect_refused'
  | 'ambiguous_path'
  | 'override_refused';

export class HttpViolation extends Error {
  override readonly name = 'HttpViolation';
  readonly code: ViolationCode;

  constructor(code: ViolationCode, message: string) {
    super(message);
    this.code = code;
  }
}
