// Requests to the server: JSON in, JSON out; an error is one line.

export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The answer to a request; body undefined = GET. */
export async function request(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ServerError("The server does not answer: is 'fusion-bench serve' still running?", 0);
  }
  const data = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new ServerError(data.error, response.status);
  return data;
}

/**
 * Sends the newest of many requests: one at a time, and of those that wait only the last.
 * Answers come in the order of the requests, so that the last one to show is that of the newest.
 */
export class NewestRequest {
  constructor(send, onAnswer, onError) {
    this.send = send;
    this.onAnswer = onAnswer;
    this.onError = onError;
    this.isRunning = false;
    this.next = null;
  }

  /** Ask, as soon as the request before is answered. */
  ask(argument) {
    this.next = { argument };
    if (!this.isRunning) this.run();
  }

  async run() {
    this.isRunning = true;
    try {
      while (this.next) await this.runOne();
    } finally {
      this.isRunning = false;
    }
  }

  async runOne() {
    const { argument } = this.next;
    this.next = null;
    try {
      const answer = await this.send(argument);
      this.onAnswer(answer, argument, this.next === null);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      if (this.next === null) this.onError(error);
    }
  }
}
