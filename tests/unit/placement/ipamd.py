"""The CNI's address daemon, step by step, written from pkg/ipamd of amazon-vpc-cni-k8s and apart from the
accounting.

Pods come and go between passes of its loop; each pass looks once at its pool and makes one change, as ipamd does. An
address that a pod gave back cools down before another pod may have it, but counts as available meanwhile."""

from dataclasses import dataclass, field

COOLING_PASSES = 6


@dataclass(kw_only=True)
class Interface:
    """Its addresses for pods: how many are free, and how many passes each of the others still cools down."""

    free: int = 0
    cooling: list[int] = field(default_factory=list)
    pods: int = 0

    @property
    def total(self):
        return self.free + len(self.cooling) + self.pods


class Ipamd:
    """`chance` decides which address a pod gets, which pod leaves, and in which order interfaces are looked at."""

    def __init__(self, *, interfaces, addresses, warm_eni=1, warm_ip=0, minimum=0, max_eni=0, chance):
        self.each = addresses - 1
        self.most = min(max_eni, interfaces) if max_eni > 0 else interfaces
        self.max_pods = interfaces * self.each + 2
        self.warm_eni, self.warm_ip, self.minimum = warm_eni, warm_ip, minimum
        self.chance = chance
        self.attached = [Interface()]
        self.waiting = 0

    @property
    def total(self):
        return sum(one.total for one in self.attached)

    @property
    def assigned(self):
        return sum(one.pods for one in self.attached)

    @property
    def pods(self):
        return self.assigned + self.waiting

    @property
    def subnet_ips(self):
        return self.total + len(self.attached)

    def arrive(self):
        self.waiting += 1
        self._serve()

    def leave(self):
        if self.waiting and not (self.assigned and self.chance.randrange(2)):
            self.waiting -= 1
            return
        holders = [one for one in self.attached if one.pods]
        if holders:
            holder = holders[self.chance.randrange(len(holders))]
            holder.pods -= 1
            holder.cooling.append(COOLING_PASSES)

    def run(self, passes):
        for _ in range(passes):
            self.look()

    def look(self):
        """One pass of the pool manager, then the clock moves on and waiting pods ask again."""
        available = self.total - self.assigned
        short, over = self._targets(available)
        if self.total < self.max_pods and self._too_low(available, short):
            self._increase(short)
        elif over:
            self._release(over)
        if self._by_address or available >= (self.warm_eni + 1) * self.each:
            self._detach_one()
        for one in self.attached:
            one.free += one.cooling.count(1)
            one.cooling = [left - 1 for left in one.cooling if left > 1]
        self._serve()

    @property
    def _by_address(self):
        return self.warm_ip != 0 or self.minimum != 0

    def _targets(self, available):
        if not self._by_address:
            return 0, 0
        short = max(self.warm_ip - available, 0, self.minimum - self.total)
        over = max(min(max(available - self.warm_ip, 0), self.total - self.minimum), 0)
        return short, over

    def _too_low(self, available, short):
        if self._by_address:
            return short > 0
        return available < self.each * self.warm_eni or (self.warm_eni == 0 and available == 0)

    def _increase(self, short):
        wanted = short if self._by_address else self.each
        for one in self.attached:
            if one.total < self.each:
                one.free += min(self.each - one.total, wanted)
                return
        if len(self.attached) < self.most:
            self.attached.append(Interface(free=min(wanted, self.each)))

    def _release(self, over):
        for one in self._any_order():
            given = min(one.free, over)
            one.free -= given
            over -= given

    def _detach_one(self):
        for one in self._any_order():
            others = [other for other in self.attached if other is not one]
            needed = self._by_address and (
                sum(other.total - other.pods for other in others) < self.warm_ip
                or sum(other.total for other in others) < self.minimum
            )
            if one is not self.attached[0] and not one.pods and not one.cooling and not needed:
                self.attached.remove(one)
                return

    def _serve(self):
        for one in self._any_order():
            served = min(one.free, self.waiting)
            one.free -= served
            one.pods += served
            self.waiting -= served

    def _any_order(self):
        left = list(self.attached)
        while left:
            yield left.pop(self.chance.randrange(len(left)))
