// One question at a time: a new one takes the place of the one before it.

/** Returns ask(work): work gets a signal; the answer to what is no longer asked is dropped.
 *  ask.drop() asks for nothing any more. */
export function latest(outer) {
  let current = null;
  outer?.addEventListener("abort", () => current?.abort());
  async function ask(work, shown) {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      const found = await work(mine.signal);
      if (!mine.signal.aborted) shown.found(found);
    } catch (error) {
      if (!mine.signal.aborted) shown.failed(error);
    }
  }
  ask.drop = () => current?.abort();
  return ask;
}

/** Calls at the end of a pause; .now() at once. */
export function patient(act, milliseconds) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
  later.now = () => {
    clearTimeout(timer);
    act();
  };
  return later;
}
