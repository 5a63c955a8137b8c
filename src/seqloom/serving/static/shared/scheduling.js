// Scheduling: a new request cancels the previous one, and work that follows typing is debounced.

/**
 * Runs one request at a time. A new request cancels the one before it.
 * run(work, { onResult, onError }): work(signal) returns a promise; results of cancelled requests are dropped.
 * cancel(): cancels the current request.
 */
export function latestOnly(outerSignal) {
  let current = null;
  outerSignal?.addEventListener("abort", () => current?.abort());
  return {
    async run(work, { onResult, onError }) {
      current?.abort();
      const controller = (current = new AbortController());
      try {
        const result = await work(controller.signal);
        if (!controller.signal.aborted) onResult(result);
      } catch (error) {
        if (!controller.signal.aborted) onError(error);
      }
    },
    cancel: () => current?.abort(),
  };
}

/** Returns a function that calls `act` after a pause; its method runNow() calls it immediately. */
export function debounce(act, milliseconds) {
  let timer = 0;
  const schedule = () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
  schedule.runNow = () => {
    clearTimeout(timer);
    act();
  };
  return schedule;
}
