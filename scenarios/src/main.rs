//! dev driver
#[cfg(madsim)]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let cat = scenarios::catalogue();
    let n: u64 = args[2].parse().unwrap();
    let mutant = args.get(3).filter(|m| *m != "-").map(|s| s.as_str());
    let one: Option<u64> = args.get(4).map(|s| s.parse().unwrap());
    let only: Option<&String> = args.get(5);
    let t = std::time::Instant::now();
    let (mut runs, mut events, mut drift, mut faults) = (0u64, 0u64, 0u64, 0u64);
    let mut all = 0u64;
    for s in &cat.scenarios {
        if args[1] != "all" && s.name() != args[1] { continue }
        for c in s.contracts() {
            if only.is_some_and(|o| *o != c.id) { continue }
            let mut goals = vec![0u64; s.goals().len()];
            let mut bad = std::collections::BTreeMap::<String, (u64, u64, String)>::new();
            for seed in one.map_or(0..n, |o| o..o+1) {
                let plan = sim::draft::draft(&**s, &c, sim::seed::Seed(seed), mutant, None).unwrap();
                let run = sim::world::run_plan(&**s, &plan, &sim::world::Options { journal: one.is_some(), ..Default::default() });
                runs += 1;
                events += run.history.events().len() as u64;
                faults += run.fired.len() as u64;
                drift += run.fired.iter().filter(|f| f.is_none()).count() as u64;
                let j = sim::invariants::judge(&run, &**s);
                all = all.rotate_left(5) ^ run.history.hash();
                for (g, r) in goals.iter_mut().zip(&j.goals) { *g += *r as u64 }
                if one.is_some() {
                    for e in run.history.events() { println!("{e}") }
                    println!("{:#?}", run.plan.tape);
                    println!("{:#?}\n{:?}\n{:?}", run.belief(), j.verdict, run.end);
                }
                let v = match &j.verdict { sim::verdict::Verdict::Held => continue,
                  sim::verdict::Verdict::Violated(v) => v.iter().map(|v| format!("{} {}", v.invariant.id, v.invariant.name)).collect::<Vec<_>>().join(",") + " " + &v[0].message,
                  o => format!("{o:?}") };
                let key: String = v.chars().filter(|c| !c.is_ascii_digit()).take(100).collect();
                let e = bad.entry(key).or_insert((seed, 0, v)); e.1 += 1;
            }
            println!("{:28} {:20} goals {:?} bad {:?}", s.name(), c.id, goals, bad.values().take(6).collect::<Vec<_>>());
        }
    }
    println!("{runs} runs {events} events faults {faults} drift {drift} hash {all:016x} {:.0}/s", runs as f64 / t.elapsed().as_secs_f64());
}
#[cfg(not(madsim))]
fn main() {}
