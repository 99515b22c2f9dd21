/** Which columns take their values from which sequences: by ownership (serial, identity), or by a default that calls one. */
export const SEQUENCE_USES = `
  select d.objid as sequence, d.refobjid as relation, d.refobjsubid as attribute
    from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
   where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
     and d.deptype in ('a', 'i') and d.refobjsubid > 0
  union
  select d.refobjid, a.adrelid, a.adnum
    from pg_depend d join pg_attrdef a on a.oid = d.objid join pg_class s on s.oid = d.refobjid and s.relkind = 'S'
   where d.classid = 'pg_attrdef'::regclass and d.refclassid = 'pg_class'::regclass`;
