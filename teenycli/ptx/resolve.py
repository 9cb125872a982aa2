"""From a body's statements to :class:`~teenycli.ptx.model.Code`: names to what they stand for, instructions to forms.

Scoping is lexical: registers, variables and labels of an inner ``{ }`` shadow outer ones. Every instruction is
matched with a form of the instruction table; what no form takes is an error that says why.

May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.ptx.code import Call, Code, Label, Mem, Op, Operand, Pair, Reg, Register, Special, Symbol, Table, Vec
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.match import Matcher
from teenycli.ptx.model import Function, Int, Module, Space, Triple, Variable, symbols_in
from teenycli.ptx.specials import SPECIALS, VECTOR_SPECIALS
from teenycli.ptx.syntax import (
    FileStmt,
    LabelStmt,
    LocStmt,
    Name,
    RawCall,
    RawMem,
    RawOp,
    RawOperand,
    RawPair,
    RawVec,
    RegisterStmt,
    ScopeStmt,
    Statement,
    TableStmt,
    VariableStmt,
    statements,
)

#: Components of a vector register, by either of their names.
_COMPONENTS = {"x": "x", "y": "y", "z": "z", "w": "w", "r": "x", "g": "y", "b": "z", "a": "w"}

Meaning = Register | Variable | Function | Label | Table


class _Scope(Struct):
    """One ``{ }``: what its names mean, and the ``%r<n>`` ranges that have not been used yet."""

    parent: _Scope | None
    names: dict[str, Meaning] = field(default_factory=dict)
    ranges: dict[str, tuple[int, str, int]] = field(default_factory=dict)

    def find(self, name: str) -> Meaning | None:
        scope: _Scope | None = self
        while scope is not None:
            meaning = scope.names.get(name) or scope.from_range(name)
            if meaning is not None:
                return meaning
            scope = scope.parent
        return None

    def from_range(self, name: str) -> Register | None:
        """A register of a range such as ``%r<9>``, made when it is first met."""
        for prefix, number in _splits(name):
            held = self.ranges.get(prefix)
            if held is not None and number < held[0]:
                register = Register(name, held[1], held[2])
                self.names[name] = register
                return register
        return None

    def holds(self, name: str) -> bool:
        """Whether this very scope declares ``name``."""
        return name in self.names or any(
            prefix in self.ranges and number < self.ranges[prefix][0] for prefix, number in _splits(name)
        )

    def everything(self) -> Iterator[str]:
        scope: _Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


def _splits(name: str) -> Iterator[tuple[str, int]]:
    """Ways to read ``name`` as a prefix and a number: ``%r12`` is ``%r`` 12 or ``%r1`` 2."""
    digits = len(name) - len(name.rstrip("0123456789"))
    for length in range(min(digits, 10), 0, -1):
        tail = name[-length:]
        if tail[0] != "0" or length == 1:
            yield name[:-length], int(tail)


def resolve(module: Module, function: Function) -> Code:
    """The code of ``function``, which must have a body. Cached on the module. Raises "syntax" and its kin."""
    code = module.codes.get(function.name)
    if code is None:
        assert function.body is not None, function.name
        code = module.codes[function.name] = _Resolver(module, function).run()
    return code


def module_names(module: Module) -> dict[str, Meaning]:
    """What each name at module scope means; a definition wins over a declaration."""
    names: dict[str, Meaning] = {}
    for function in module.functions:
        if function.body is not None or function.name not in names:
            names[function.name] = function
    names |= {variable.name: variable for variable in module.variables}
    for alias, target in module.aliases.items():
        if target in names:
            names[alias] = names[target]
    return names


def check_initialisers(module: Module) -> None:
    """Every address in an initialiser is of a name that the module declares. Raises "undeclared"."""
    names = module_names(module)
    for variable in module.variables:
        for name in symbols_in(variable.init):
            if name not in names:
                raise TeenyError(
                    "undeclared",
                    f"the initialiser of '{variable.name}' names '{name}', which is not declared",
                    where=Place(module.source.name, variable.at.line, variable.at.column),
                    hint=did_you_mean(name, names),
                )


class _Resolver:
    def __init__(self, module: Module, function: Function) -> None:
        assert function.body is not None
        self.module = module
        self.function = function
        self.cursor = Cursor(module.source, function.body.start, function.body.line)
        self.matcher = Matcher(self.cursor, module)
        self.scope = _Scope(None, module_names(module))
        self.ops: list[Op] = []
        self.labels: dict[str, int] = {}
        self.registers: list[Register] = []
        self.variables: list[Variable] = []
        self.files: dict[int, str] = {}
        self.loc: Triple | None = None
        self.inlined_at: tuple[Triple, ...] = ()
        #: Where each location seen so far was inlined.
        self.locations: dict[Triple, tuple[Triple, ...]] = {}
        self.label_count: dict[str, int] = {}

    def run(self) -> Code:
        body = statements(self.cursor)
        self.scope = _Scope(self.scope)
        for parameter in (*self.function.returns, *self.function.params):
            if parameter.space is Space.REG:
                self.scope.names[parameter.name] = Register(parameter.name, parameter.type, parameter.vector)
            else:
                self.scope.names[parameter.name] = parameter
        self._block(body)
        return Code(
            self.function, tuple(self.ops), self.labels, tuple(self.registers), tuple(self.variables), self.files,
            self.module,
        )  # fmt: skip

    # --- scopes ---

    def _block(self, body: list[Statement]) -> None:
        """The statements of one scope, labels and tables first, since they may be named before they stand."""
        for statement in body:
            if isinstance(statement, LabelStmt):
                self._declare(statement.name, Label(self._unique(statement.name)), statement.start, "label")
        for statement in body:
            if isinstance(statement, TableStmt):
                self._declare(statement.name, self._table(statement), statement.start, "label")
        for statement in body:
            self._statement(statement)
        self.registers += [meaning for meaning in self.scope.names.values() if isinstance(meaning, Register)]

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, RawOp):
            self.ops.append(self._op(statement))
        elif isinstance(statement, LabelStmt):
            label = self.scope.names[statement.name]
            assert isinstance(label, Label)
            self.labels[label.name] = len(self.ops)
        elif isinstance(statement, RegisterStmt):
            self._declare_registers(statement)
        elif isinstance(statement, VariableStmt):
            for variable in statement.variables:
                self._declare(variable.name, variable, statement.start, "variable")
                self.variables.append(variable)
        elif isinstance(statement, LocStmt):
            self._locate(statement)
        elif isinstance(statement, ScopeStmt):
            self.scope = _Scope(self.scope)
            self._block(statement.body)
            assert self.scope.parent is not None
            self.scope = self.scope.parent
        elif isinstance(statement, FileStmt):
            self.files[statement.number] = statement.name

    def _locate(self, statement: LocStmt) -> None:
        self.loc = statement.loc
        if statement.inlined_at is not None and statement.inlined_at not in self.locations:
            where = " ".join(map(str, statement.inlined_at))
            self.cursor.fail_at(statement.start, f"inlined_at {where} is no location of an earlier .loc")
        self.inlined_at = ()
        if statement.inlined_at is not None:
            self.inlined_at = (statement.inlined_at, *self.locations[statement.inlined_at])
        self.locations[statement.loc] = self.inlined_at

    def _unique(self, name: str) -> str:
        count = self.label_count[name] = self.label_count.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def _declare(self, name: str, meaning: Meaning, start: int, what: str) -> None:
        if self.scope.holds(name):
            self.cursor.fail_at(start, f"{what} '{name}' is declared twice in one scope", id="declared-twice")
        self.scope.names[name] = meaning

    def _declare_registers(self, statement: RegisterStmt) -> None:
        for name, count, start in statement.names:
            if count is None:
                register = Register(name, statement.type, statement.vector)
                self._declare(name, register, start, "register")
                continue
            clash = name in self.scope.ranges or any(
                prefix == name and number < count for known in self.scope.names for prefix, number in _splits(known)
            )
            if clash:
                self.cursor.fail_at(
                    start, f"registers '{name}<{count}>' are declared twice in one scope", id="declared-twice"
                )
            self.scope.ranges[name] = (count, statement.type, statement.vector)

    def _table(self, statement: TableStmt) -> Table:
        labels, functions = [], []
        for name in statement.names:
            meaning = self._find(name)
            if isinstance(meaning, Label) and statement.kind == ".branchtargets":
                labels.append(meaning)
            elif isinstance(meaning, Function) and statement.kind == ".calltargets":
                functions.append(meaning)
            else:
                kind = "label" if statement.kind == ".branchtargets" else "function"
                self.cursor.fail_at(name.start, f"'{name.text}' in {statement.kind} is no {kind}")
        return Table(statement.name, tuple(labels), tuple(functions), statement.params, statement.returns)

    def _find(self, name: Name) -> Meaning:
        meaning = self.scope.find(name.text)
        if meaning is None:
            self.cursor.fail_at(
                name.start,
                f"'{name.text}' is not declared here",
                did_you_mean(name.text, self.scope.everything()),
                id="undeclared",
            )
        return meaning

    # --- instructions ---

    def _op(self, raw: RawOp) -> Op:
        guard = None
        if raw.guard is not None:
            resolved = self._operand(raw.guard)
            if not isinstance(resolved, Reg) or resolved.register.type != "pred":
                self.cursor.fail_at(raw.guard.start, f"the guard '{raw.guard.text}' is no predicate register")
            guard = resolved
        operands = tuple([self._operand(operand) for operand in raw.operands])
        form, mods, operands = self.matcher.match(raw, operands)
        return Op(
            form, raw.opcode, mods, operands, guard, raw.call and self._call(raw.call), self.loc,
            self.inlined_at, self.cursor.position(raw.start),
        )  # fmt: skip

    def _operand(self, raw: RawOperand) -> Operand | None:
        if isinstance(raw, Name):
            return self._name(raw)
        if isinstance(raw, RawVec):
            return Vec(tuple([self._operand(item) for item in raw.items]))
        if isinstance(raw, RawMem):
            return Mem(
                raw.base if isinstance(raw.base, int) else self._base(raw.base),
                raw.offset,
                tuple([self._operand_of_coords(item) for item in raw.coords]),
                raw.part,
            )
        if isinstance(raw, RawPair):
            return Pair(self._operand(raw.first), self._operand(raw.second))
        return raw

    def _operand_of_coords(self, raw: RawOperand) -> Operand:
        resolved = self._operand(raw)
        return Int(0) if resolved is None else resolved

    def _base(self, name: Name) -> Reg | Variable | Function:
        resolved = self._name(name)
        if isinstance(resolved, Reg):
            if resolved.register.type[0] not in "bsu":
                self.cursor.fail_at(
                    name.start, f"'{name.text}' is a .{resolved.register.type} register, and no address"
                )
            return resolved
        if isinstance(resolved, Symbol):
            return resolved.target
        self.cursor.fail_at(name.start, f"'{name.text}' cannot be an address")

    def _name(self, name: Name) -> Operand:
        if name.text in SPECIALS and self.scope.find(name.text) is None:
            return self._special(name)
        meaning = self._find(name)
        if isinstance(meaning, Register):
            return self._use(name, meaning)
        if name.part is not None or name.sign:
            self.cursor.fail_at(name.start, f"'{name.text}' is no register, and has no parts and no sign")
        if isinstance(meaning, (Label, Table)):
            return meaning
        if name.subscript and isinstance(meaning, Variable):
            if not meaning.dims:
                self.cursor.fail_at(name.start, f"'{name.text}' is no array, and has no element [{name.offset}]")
            return Mem(meaning, (name.offset or 0))
        return Symbol(meaning, name.offset or 0)

    def _use(self, name: Name, register: Register) -> Reg:
        if name.offset is not None:  # inside brackets it has been taken off already
            self.cursor.fail_at(name.start, f"'{name.text}' is a register; an offset on it belongs inside brackets")
        if name.sign == ("-" if register.type == "pred" else "!"):
            self.cursor.fail_at(
                name.start, f"'{name.sign}' cannot stand before '{name.text}', a .{register.type} register"
            )
        if name.part is None or register.vector == 1:
            return Reg(register, name.part, bool(name.sign))
        part = _COMPONENTS.get(name.part)
        if part is None or "xyzw".index(part) >= register.vector:
            self.cursor.fail_at(
                name.start, f"'.{name.part}' is no component of '{name.text}', a vector of {register.vector}"
            )
        return Reg(register, part, bool(name.sign))

    def _special(self, name: Name) -> Special:
        is_vector = name.text in VECTOR_SPECIALS
        if name.part is not None and (not is_vector or name.part not in ("x", "y", "z", "w")):
            self.cursor.fail_at(name.start, f"'{name.text}' has no component '.{name.part}'")
        return Special(name.text, name.part)

    def _call(self, raw: RawCall) -> Call:
        target = self._name(raw.target)
        table: Table | None = None
        if raw.table is not None:
            meaning = self._find(raw.table)
            if not isinstance(meaning, Table):
                self.cursor.fail_at(raw.table.start, f"'{raw.table.text}' is no prototype or list of targets")
            table = meaning
        returns = tuple([self._argument(item) for item in raw.returns])
        args = tuple([self._argument(item) for item in raw.args])
        if isinstance(target, Reg):
            if table is None:
                self.cursor.fail_at(raw.target.start, "an indirect call needs a .callprototype or .calltargets")
            return Call(target, returns, args, table)
        if not isinstance(target, Symbol) or not isinstance(target.target, Function):
            self.cursor.fail_at(raw.target.start, f"'{raw.target.text}' is no function")
        function = target.target
        if table is None:
            self._check_counts(raw, function, len(returns), len(args))
        return Call(function, returns, args, table)

    def _check_counts(self, raw: RawCall, function: Function, returns: int, args: int) -> None:
        variadic = any(p.dims and p.dims[0] is None for p in function.params)
        for given, wanted, what in (
            (returns, len(function.returns), "results"),
            (args, len(function.params), "arguments"),
        ):
            if given != wanted and not (variadic and what == "arguments"):
                self.cursor.fail_at(
                    raw.target.start,
                    f"'{function.name}' has {wanted} {what}, the call gives {given}",
                    id="call-mismatch",
                )

    def _argument(self, raw: RawOperand) -> Operand:
        resolved = self._operand(raw)
        if resolved is None:
            self.cursor.fail("an argument")
        return resolved
