/** The labels of a sandbox that `sally agent` made: which agent it is for, and on which branch that works. */

export const agentLabel = 'sallyport.agent';
export const branchLabel = 'sallyport.branch';
