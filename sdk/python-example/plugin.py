"""A native plugin in Python with two handlers: py.reverse turns text round, py.sum adds numbers and saves checkpoints on the way."""

import json

import taskhost_plugin as taskhost


def reverse(job):
    text = job.payload.decode()
    job.log("reversing %d characters" % len(text))
    return text[::-1].encode()


def total(job):
    try:
        numbers = json.loads(job.payload)["numbers"]
    except (ValueError, KeyError, TypeError) as err:
        raise taskhost.Permanent("payload: %r; want {\"numbers\": [...]}" % err)
    state = json.loads(job.checkpoint) if job.checkpoint else {"next": 0, "sum": 0}
    for i in range(state["next"], len(numbers)):
        if job.stop.is_set():
            raise taskhost.Retry("told to stop")
        state = {"next": i + 1, "sum": state["sum"] + numbers[i]}
        job.progress(i + 1, len(numbers))
    job.save_checkpoint(json.dumps(state).encode())
    return json.dumps({"sum": state["sum"]}).encode()


if __name__ == "__main__":
    taskhost.serve({"py.reverse": reverse, "py.sum": total})
